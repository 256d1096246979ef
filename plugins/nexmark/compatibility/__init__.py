"""Does a running job survive the upgrade? Checkpoints of one Spark build under another one."""
