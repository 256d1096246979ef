"""Flame graphs of a suspect: where the CPU time of both arms goes, and what of it has changed."""

from nexmark.flames.changes import Change
from nexmark.flames.files import Flames, flames_of

__all__ = ["Change", "Flames", "flames_of"]
