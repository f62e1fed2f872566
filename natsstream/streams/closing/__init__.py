"""Control records in a stream, and its end: which subjects they have, and what the end says."""
