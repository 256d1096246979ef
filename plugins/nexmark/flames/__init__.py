"""Flame graphs of a suspect: the CPU time of both arms, and its changes."""

from nexmark.flames.flame_files import Flames, flames_of
from nexmark.flames.tree import MethodChange

__all__ = ["Flames", "MethodChange", "flames_of"]
