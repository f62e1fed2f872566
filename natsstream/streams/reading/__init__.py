"""Reading streams: bounded ranges, and ordered consumers that follow without an end."""
