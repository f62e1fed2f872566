"""Backup of a stream into a folder, and back."""
