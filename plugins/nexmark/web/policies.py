"""Content-Security-Policies: what a page may load and run."""

PAGE = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""For our pages: nothing from elsewhere."""

ALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""For files that were written to be read by themselves: their style, no script, no origin."""

SCRIPTED = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "sandbox allow-scripts"
)
"""For drawings that have a script of their own: it has no origin, and asks nobody."""

__all__ = ["ALONE", "PAGE", "SCRIPTED"]
