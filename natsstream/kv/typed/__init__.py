"""Values of a type instead of bytes."""
