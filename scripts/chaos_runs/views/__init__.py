"""The crew of the views: buckets, watches, mirrors, locks and stores under the same faults."""
