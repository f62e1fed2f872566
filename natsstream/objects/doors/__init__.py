"""The parts of a store's surface, one group of calls a file; `objects/store.py` composes them."""
