"""What is measured: each subject runs in a process of its own and prints one JSON line."""
