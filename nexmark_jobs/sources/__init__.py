"""Where the event streams of a query job come from."""
