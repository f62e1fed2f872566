"""What views of a stream share: buckets and object stores, told by their own names."""
