"""Error class and hint of each code in the server's catalogue, by topic."""
