"""The parts of a bucket's surface, one group of calls a file; `kv/bucket.py` puts them together."""
