"""`scipy.ndimage`: filters and morphology.

A filter reaches over its neighbourhood along the axes that it has: those of one axis are split along another.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.annotations.annotation import annotate
from irkit.annotations.split_types import ArraySplit, SplitType
from irkit.annotations.structures import Argument, ArrayType

# fmt: off

ALONG_ONE_AXIS = (
    "convolve1d", "correlate1d", "gaussian_filter1d", "maximum_filter1d", "minimum_filter1d",
    "uniform_filter1d",
)
FILTERS = (
    "black_tophat", "convolve", "correlate", "gaussian_filter", "gaussian_laplace", "grey_closing",
    "grey_dilation", "grey_erosion", "grey_opening", "laplace", "maximum_filter", "median_filter",
    "minimum_filter", "percentile_filter", "prewitt", "rank_filter", "shift", "sobel", "uniform_filter",
    "white_tophat",
)
BINARY = (
    "binary_closing", "binary_dilation", "binary_erosion", "binary_opening", "binary_propagation",
)
"""Functions whose result is of booleans, unless they are given an array for it."""
# fmt: on


def annotate_all() -> None:
    """Annotate what has a result of the input's shape and, unless `output` says another, its dtype."""
    module = importlib.import_module("scipy.ndimage")
    for name in ALONG_ONE_AXIS:
        _annotated(module, name, _result(None), _beside)
    for name in FILTERS:
        _annotated(module, name, _result(None))
    for name in BINARY:
        _annotated(module, name, _result(np.dtype(bool)))


def _annotated(
    module: Any, name: str, result: Callable[..., Any], types: Callable[..., Any] | None = None
) -> None:
    annotate(getattr(module, name), types=types, writes=["output"], result=result)


def _result(dtype: np.dtype[Any] | None) -> Callable[..., Any]:
    def result(input: Any, *rest: Any, **named: Any) -> Any:
        given = input if isinstance(input, ArrayType) else ArrayType.of(np.asarray(input))
        output = named.get("output")
        if isinstance(output, ArrayType):
            return Argument("output")
        found = given.dtype if output is None else np.dtype(output)
        return ArrayType(given.shape, dtype or found)

    return result


def _beside(input: Any, *rest: Any, **named: Any) -> Mapping[str, SplitType]:
    """Along the first axis that the filter does not go along."""
    rank = len(input.shape) if isinstance(input, ArrayType) else 0
    # `axis` and `output` may be positional: then nothing is said.
    if rank < 2 or len(rest) > 1:
        return {}
    own = int(named.get("axis", -1)) % rank
    split = ArraySplit(1 if own == 0 else 0)
    return {"input": split, "output": split, "return": split}
