"""The parts of a stream's configuration that have fields of their own, a file for each noun."""
