"""Chaos: readers, followers and publishers under random faults, and the proof that none lies."""
