"""Values too large for one message, as chunks under a subject of their own."""
