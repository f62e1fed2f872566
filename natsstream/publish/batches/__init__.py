"""Batches (ADR-50): atomic ones, stored whole or not at all, and fast ones, acked in the lump."""
