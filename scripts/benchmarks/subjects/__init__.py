"""The measured programs: each subject runs in a process of its own and prints one JSON line."""
