"""The record that ends a stream: what it says."""
