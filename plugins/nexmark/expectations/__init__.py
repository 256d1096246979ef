"""Reference results, expectations and Data Docs: is a query's output right?"""
