"""The files that a job of a person's own reads: which they are, and their layout in batches."""
