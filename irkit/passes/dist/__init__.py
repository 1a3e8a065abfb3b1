"""Passes over functions of a group of ranks."""
