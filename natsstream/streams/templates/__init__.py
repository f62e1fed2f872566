"""Streams that are made when a message is published for which there is none."""
