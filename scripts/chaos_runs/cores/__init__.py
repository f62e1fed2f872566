"""The crew of `scripts/chaos` that works on core streams, maps and logs."""
