"""The newest message of each subject, then what comes: watches of views stand on it."""
