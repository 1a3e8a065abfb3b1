"""The table of docs/graph.md says which element types each op takes."""

from __future__ import annotations

import re
from pathlib import Path

from irkit.dialects import graph
from irkit.dialects.csr_base import PLACES, SINGLES
from irkit.dialects.element_sets import (
    ALL,
    BOOLEANS,
    FLOATS,
    INDICES,
    INTEGERS,
    NODES,
    NUMBERS,
    WORDS,
)
from irkit.dialects.nibbles import BYTES
from irkit.dialects.nibbles import FLOATS as FLOAT32

PAGE = Path(__file__).parents[2] / "docs" / "graph.md"
NAMES = {
    "all": (ALL,),
    "i1, integers": (BOOLEANS | INTEGERS,),
    "integers": (INTEGERS,),
    "integers, floats": (NUMBERS,),
    "floats": (FLOATS,),
    "f32, f64": (SINGLES,),
    "ui64": (WORDS,),
    "all, indices of i32 or i64": (ALL, INDICES),
    "floats, i1 or floats for the mask": (FLOATS, FLOATS, FLOATS, BOOLEANS | FLOATS),
    "f32 or f64, i1 or these for the mask": (*(SINGLES,) * 4, BOOLEANS | SINGLES),
    "f32 or f64 of both sides, i1 or these for the mask": (*(SINGLES,) * 5, BOOLEANS | SINGLES),
    "f32, bytes of ui8, f32 for scales and zero points": (FLOAT32, BYTES, FLOAT32, FLOAT32),
    "f32 or f64, indices of i32 or i64": (SINGLES, INDICES, SINGLES),
    "i1 for the condition, all for the rest": (BOOLEANS, ALL),
    "floats, node numbers of i32, i1": (
        *(FLOATS, NODES, FLOATS, NODES, NODES, BOOLEANS),
        *(FLOATS, NODES, NODES, FLOATS),
    ),
    "f32 or f64, columns of i32, places of i64, f32, f64 or i1 for the steps": (
        *(SINGLES, NODES, PLACES, PLACES, SINGLES),
        SINGLES | BOOLEANS,
    ),
    "f32 or f64, columns of i32, places of i64, steps as before": (
        *(SINGLES, NODES, PLACES, PLACES),
        SINGLES | BOOLEANS,
    ),
    "f32 or f64, columns of i32, places of i64": (SINGLES, NODES, PLACES, PLACES),
}


def test_the_table_has_every_op_with_what_it_takes():
    rows = re.findall(r"^\| ([^|]+) \| (`[^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    found = {
        f"graph.{name}": NAMES[types] for types, ops in rows for name in ops.strip("`").split("` `")
    }
    wanted = {
        op.name: op.ELEMENTS for op in graph.Graph.operations if issubclass(op, graph.GraphOp)
    }
    assert found == wanted
