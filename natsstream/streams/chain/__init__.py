"""Hash chains of messages, which detect a changed, removed, moved or added message."""
