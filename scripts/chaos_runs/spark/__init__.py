"""The crew of Spark: an ingest and a copy whose servers, executors and drivers are killed."""
