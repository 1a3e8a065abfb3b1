"""Passes over DAGs of kernels."""
