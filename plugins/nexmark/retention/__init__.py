"""Decide what stays of what nights leave behind, and delete the rest."""
