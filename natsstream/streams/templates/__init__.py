"""Templates of streams, which are created when a message needs one."""
