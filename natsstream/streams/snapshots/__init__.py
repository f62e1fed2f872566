"""Backups of streams in folders, and restores."""
