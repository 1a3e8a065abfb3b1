"""Arrays as the caller of `@main` sees them, and as its function has them since `batch-to-front`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.batch_border import INPUT_BATCH, OUTPUT_BATCH, places_of
from irkit.dialects.functions import function_named
from irkit.weights import Array


def from_caller(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    """The arguments of `@main`. One of too few dimensions is left as it is, for the interpreter to refuse."""
    main = function_named(module, "main")
    if main is None or INPUT_BATCH not in main.attributes:
        return list(inputs)
    places = places_of(main, INPUT_BATCH, len(inputs))
    return [
        x if p is None or np.ndim(x) <= p.axis else np.ascontiguousarray(p.to_front(x))
        for x, p in zip(inputs, places, strict=True)
    ]


def to_caller(module: ModuleOp, outputs: Sequence[Array]) -> list[Array]:
    """What the caller gets of the results of `@main`."""
    main = function_named(module, "main")
    if main is None or OUTPUT_BATCH not in main.attributes:
        return list(outputs)
    places = places_of(main, OUTPUT_BATCH, len(outputs))
    return [y if p is None else p.back(y) for y, p in zip(outputs, places, strict=True)]
