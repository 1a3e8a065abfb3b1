"""Compiling and running emitted CUDA modules.

`compiling` needs Numba but no GPU; everything else needs a GPU but no Numba.
"""
