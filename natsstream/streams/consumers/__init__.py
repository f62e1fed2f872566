"""Consumers of a stream: what they are, how they are made, and the handle that reads one."""
