"""Core streams and the layers of Conat above them."""
