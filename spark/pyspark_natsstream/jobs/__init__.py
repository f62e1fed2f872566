"""Programs that run as `python -m pyspark_natsstream.jobs.NAME`."""
