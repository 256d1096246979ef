"""A person's own jobs: new ones, and what a check finds before a night runs them."""
