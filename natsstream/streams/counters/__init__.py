"""Counters: subjects whose last message holds a whole number that the server adds to (ADR-49)."""
