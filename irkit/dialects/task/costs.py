"""`batches` and `costs` of an rOperator or an alternative: what an rTask takes at several sizes of the batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import cast

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, f64
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from irkit.dialects.types import int_array, ints

BATCHES, COSTS = "batches", "costs"


def cost_facts(costs: Mapping[int, float]) -> dict[str, Attribute]:
    """Rows of the batch -> ns of an rTask, as attributes; none where there are no `costs`.

    They are kept to six digits: a whole number of more is printed in hexadecimal, as no array is read.
    """
    if not costs:
        return {}
    return {
        BATCHES: int_array(list(costs)),
        COSTS: DenseArrayBase.from_list(f64, [float(f"{ns:.5e}") for ns in costs.values()]),
    }


def costs_by_rows(facts: Mapping[str, Attribute]) -> dict[int, float]:
    """What `cost_facts` made attributes of; empty where nothing is said."""
    if BATCHES not in facts:
        return {}
    costs = cast(DenseArrayBase[Float64Type], facts[COSTS]).get_values()
    return dict(zip(ints(facts[BATCHES]), map(float, costs), strict=True))


def costs_fault(facts: Mapping[str, Attribute]) -> str | None:
    """Why `batches` and `costs` say nothing that can be understood; None if they do, or are absent."""
    if BATCHES not in facts and COSTS not in facts:
        return None
    batches, costs = facts.get(BATCHES), facts.get(COSTS)
    if not isa(batches, DenseArrayBase[I64]) or not isa(costs, DenseArrayBase[Float64Type]):
        return "expects numbers of rows in batches, of i64, and a cost for each in costs, of f64"
    rows, times = ints(batches), [float(ns) for ns in costs.get_values()]
    if not rows or len(rows) != len(times):
        return f"expects a cost for each of {len(rows)} batches, got {len(times)}"
    if rows[0] < 1 or any(a >= b for a, b in pairwise(rows)):
        return f"expects batches of rising numbers of rows, got {rows}"
    if not all(0 <= ns < math.inf for ns in times):
        return f"expects costs of 0 ns or more, got {times}"
    return None
