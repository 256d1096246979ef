"""Renderings of the evidence: the text table, CSV, JSON, pages, the bundle of a sign-off."""
