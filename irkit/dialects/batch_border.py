"""What `batch-to-front` writes on a function: where its caller sees the batch.

`irkit.input_batch` and `irkit.output_batch` have an array for each argument and result: empty where the caller
sees what the function has, else `array<i64: axis, outer, inner>`, the fields of a `BatchPlace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from irkit.batch_place import BatchPlace
from irkit.dialects.types import int_array, ints

INPUT_BATCH = "irkit.input_batch"
OUTPUT_BATCH = "irkit.output_batch"


def places_attribute(name: str, places: Sequence[BatchPlace | None]) -> dict[str, Attribute]:
    """Attribute `name`, where any place is told."""
    if not any(places):
        return {}
    rows = [() if p is None else (p.axis, p.outer, p.inner) for p in places]
    return {name: ArrayAttr([int_array(row) for row in rows])}


def places_of(function: FuncOp, name: str, count: int) -> list[BatchPlace | None]:
    """The places that attribute `name` of a function tells, one for each of `count` values."""
    found = function.attributes.get(name)
    if not isinstance(found, ArrayAttr):
        return [None] * count
    rows = [ints(row) for row in cast("ArrayAttr[Attribute]", found)]
    if len(rows) != count:
        return [None] * count
    return [BatchPlace(*row) if len(row) == 3 else None for row in rows]
