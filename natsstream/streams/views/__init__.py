"""The shared parts of views of a stream: buckets and object stores, under their own names."""
