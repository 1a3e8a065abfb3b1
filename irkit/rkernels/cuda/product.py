"""product: contractions and convolutions as matrix products."""

from irkit.rkernels.registry import RKernel

RKERNELS: list[RKernel] = []
