"""Modules, weights and text on disk: reading, parsing, printing, writing."""
