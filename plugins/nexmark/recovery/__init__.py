"""Recovery: what it costs to kill and restart a query, and whether its result is still right."""
