"""Messages that nobody could handle: kept, listed, sent again."""
