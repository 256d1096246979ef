"""What changed in the source of Spark between two builds: by the forge, and by a local clone."""
