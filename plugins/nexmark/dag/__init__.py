"""The graphs of the DAGs, their params, and the operators they are made of."""
