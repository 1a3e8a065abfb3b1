"""Functions of NumPy that count, which the host has machine code for."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.annotations.histograms import histogram_annotation
from irkit.frontends.numpy.host_calls import host_call
from irkit.frontends.numpy.operands import array_of

PARAMETERS = ("a", "bins", "range", "density", "weights")


def histogram(*args: Any, **kwargs: Any) -> Any:
    """`np.histogram`: of bins of one width by irkit's own code, else by NumPy's; by the host either way."""
    from irkit.frontends.numpy.foreign import opaque

    given = {"bins": 10, **dict(zip(PARAMETERS, args, strict=False)), **kwargs}
    weights = given.get("weights")
    values, own = array_of(given["a"]), None if weights is None else array_of(weights)
    limits, density = given.get("range"), given.get("density")
    known = None if density else histogram_annotation(values, given["bins"], limits, own)
    if known is not None:
        return host_call(known, (values, given["bins"], limits, own), {})
    why = "irkit has no form of numpy.histogram with these arguments"
    return opaque(np.histogram, why, args, kwargs)
