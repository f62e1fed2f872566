"""The crew of producers: instances that are replaced, killed and left running, under the faults."""
