"""What a bucket is: its configuration, its place, its state (ADR-8, ADR-57)."""
