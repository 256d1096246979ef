"""Kill a query, restart it, and measure what that costs and whether the result is still right."""
