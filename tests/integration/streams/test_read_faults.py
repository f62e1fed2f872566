"""Integration tests of reading under faults (being written by a helper)."""
