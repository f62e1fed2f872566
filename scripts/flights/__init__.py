"""The quickstart: flights from a CSV file into a stream, from the stream into a Spark table.

The order of the work stands in `run.py`; each step is a file of its own. `prove.py` knows nothing
of the others: it reads the CSV and the table, and compares.
"""
