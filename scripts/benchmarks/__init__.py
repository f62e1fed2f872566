"""Benchmarks: each subject in a process of its own, rounds interleaved, ratios inside a round."""
