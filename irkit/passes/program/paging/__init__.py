"""Regions in chunks: how large they are, and the program that has them."""
