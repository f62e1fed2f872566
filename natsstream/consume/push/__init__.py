"""Push consumers, for deployments that have them: the server sends, and waits for the reader."""
