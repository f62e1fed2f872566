"""The parts of a stream's surface, a file for each thing that one does with a stream."""
