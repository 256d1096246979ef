"""What the DAGs wire together: operators, task functions, and the graphs themselves."""
