"""All that ships to the cluster: the Spark side of the benchmark (pyspark and stdlib only)."""
