"""Frozen view models of a night, a query, a comparison and a sign-off.

No HTML and no SQL: the store is read by its own functions, and ``report`` and ``web`` render these
objects. A new kind of evidence is a dataclass here, a function of the store, and a template.
"""
