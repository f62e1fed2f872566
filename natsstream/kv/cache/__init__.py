"""A local mirror of a bucket: reads from memory, with its staleness."""
