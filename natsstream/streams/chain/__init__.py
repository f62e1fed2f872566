"""Chains of messages that show when one was changed, removed, moved or added."""
