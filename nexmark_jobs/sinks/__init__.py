"""Where the rows of a query go."""
