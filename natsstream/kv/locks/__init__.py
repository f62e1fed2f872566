"""Locks and elections on keys that expire, with fencing tokens."""
