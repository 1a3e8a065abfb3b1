"""The table of NumPy's functions that are no universal ones; of others their own Python is traced."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from irkit.frontends.numpy import (
    flat_places,
    indexing,
    limits,
    linear,
    piecewise,
    reductions,
    rolling,
    shaping,
    views,
)
from irkit.frontends.numpy.complex_calls import has_complex
from irkit.frontends.numpy.counting import histogram
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.small_matrices import SMALL
from irkit.frontends.numpy.smooth import SMOOTH

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "all": reductions.of_kind("all"),
    "amax": reductions.of_kind("max"),
    "amin": reductions.of_kind("min"),
    "any": reductions.of_kind("any"),
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "array_split": views.array_split,
    "around": shaping.rounded,
    "broadcast_arrays": shaping.broadcast_arrays,
    "broadcast_to": shaping.broadcast_to,
    "clip": limits.clip,
    "concatenate": shaping.concatenate,
    "copy": shaping.copied,
    "copyto": shaping.copyto,
    "argsort": reductions.argsort,
    "count_nonzero": reductions.count_nonzero,
    "cumprod": reductions.cumprod,
    "cumsum": reductions.cumsum,
    "diag": shaping.diag,
    "diagonal": shaping.diagonal,
    "dot": linear.dot,
    "einsum": linear.einsum,
    "empty_like": shaping.like(None),
    "expand_dims": shaping.viewing(np.expand_dims),
    "fill_diagonal": flat_places.fill_diagonal,
    "full_like": shaping.full_like,
    "inner": linear.inner,
    "max": reductions.of_kind("max"),
    "mean": reductions.mean,
    "min": reductions.of_kind("min"),
    "moveaxis": shaping.viewing(np.moveaxis),
    "ndim": shaping.ndim,
    "ones_like": shaping.like(1),
    "outer": linear.outer,
    "pad": shaping.pad,
    "piecewise": piecewise.piecewise,
    "prod": reductions.of_kind("prod"),
    "ravel": shaping.ravel,
    "repeat": shaping.repeat,
    "reshape": shaping.reshape,
    "result_type": shaping.result_type,
    "roll": rolling.roll,
    "round": shaping.rounded,
    "shape": shaping.shape_of,
    "size": shaping.size,
    "sort": reductions.sort,
    "split": views.split,
    "squeeze": shaping.viewing(np.squeeze),
    "std": reductions.std,
    "sum": reductions.of_kind("sum"),
    "swapaxes": shaping.viewing(np.swapaxes),
    "take": indexing.take,
    "take_along_axis": indexing.take_along_axis,
    "transpose": shaping.viewing(np.transpose),
    "tril": shaping.triangle(False),
    "triu": shaping.triangle(True),
    "unravel_index": flat_places.unravel_index,
    "var": reductions.var,
    "vdot": linear.vdot,
    "where": shaping.where,
    "histogram": histogram,
    "zeros_like": shaping.like(0),
}
"""Name of a function of `numpy` → what it is of traced arrays."""

OF_REAL = frozenset(
    [
        "amax",
        "amin",
        "argmax",
        "argmin",
        "argsort",
        "clip",
        "cumprod",
        "cumsum",
        "einsum",
        "histogram",
        "max",
        "min",
        "prod",
        "sort",
        "take_along_axis",
    ]
)
"""Those that irkit has of real numbers only."""

# Functions of NumPy, some of them for some arguments alone, whose Python reads values, or calls what is not
# NumPy: tasks of the host.
OPAQUE = frozenset(
    [
        "allclose",
        "array_equal",
        "array_equiv",
        "histogram",
        "histogram2d",
        "histogramdd",
        "histogram_bin_edges",
        "interp",
        "median",
        "percentile",
        "quantile",
        "partition",
        "argpartition",
        "searchsorted",
        "place",
        "choose",
        "select",
        "digitize",
        "bincount",
        "lexsort",
        "in1d",
        "isin",
        "fill_diagonal",
        "unravel_index",
    ]
)
# Functions of `numpy.linalg` whose Python is of arrays alone. The others ask LAPACK.
COMPOSED = frozenset(
    [
        "cross",
        "diagonal",
        "matmul",
        "matrix_norm",
        "matrix_power",
        "matrix_transpose",
        "multi_dot",
        "norm",
        "outer",
        "tensordot",
        "trace",
        "vecdot",
        "vector_norm",
    ]
)
# Those whose results have shapes that hang on values, that read files, or make text.
REFUSED = frozenset(
    [
        "savetxt",
        "save",
        "savez",
        "savez_compressed",
        "array2string",
        "array_str",
        "array_repr",
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
        "nonzero",
        "argwhere",
        "flatnonzero",
        "extract",
        "apply_along_axis",
        "apply_over_axes",
        "union1d",
        "intersect1d",
        "setdiff1d",
        "setxor1d",
        "trim_zeros",
    ]
)


def function_call(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What `__array_function__` returns: by the table, by tracing the function's own Python, or by calling
    it, a task of the host. Raises UnsupportedError for a function that cannot be any."""
    from irkit.frontends.numpy.foreign import opaque, traced_or_opaque
    from irkit.frontends.numpy.globals import traced_function

    if func is np.lib.stride_tricks.sliding_window_view:
        return views.sliding_window_view(*args, **kwargs)
    name = func.__name__
    plain = getattr(np, name, None)
    where = f"{getattr(func, '__module__', 'numpy')}.{name}"
    if plain is func and name in FUNCTIONS:
        if name in OF_REAL and has_complex((args, kwargs)):
            raise refused(f"{where} of complex numbers")
        return FUNCTIONS[name](*args, **kwargs)
    if name in REFUSED:
        raise refused(
            f"{where}: what it gives has a shape that hangs on values, or is text or a file: call it outside "
            "of the compiled function"
        )
    if name in SMALL and getattr(np.linalg, name) is func and recorder().in_rounds:
        found = SMALL[name](*args, **kwargs)
        if found is not None:
            return found
    own = getattr(func, "__wrapped__", None)
    composed = getattr(np.linalg, name, None) is func and name in COMPOSED
    known = plain is func or composed
    if not known or name in OPAQUE or not isinstance(own, types.FunctionType):
        return opaque(func, f"irkit has no form of {where}", args, kwargs)
    body = traced_function(own)
    if name in SMOOTH and recorder().differentiated:
        body = partial(SMOOTH[name], body)
    return traced_or_opaque(func, body, tuple(args), dict(kwargs))
