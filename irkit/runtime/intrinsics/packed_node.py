"""LLVM text of a packed node's parts (`irkit/dialects/packed_nodes.py`), for both targets."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")

_I32 = ir.IntType(32)
_WORDS = 4


def node_parts(builder: Any, nodes: Any, index: Any, element: Any) -> list[Any]:
    """Threshold (of type `element`), third and fourth word of node `index`, in one read of 16 bytes."""
    words = ir.VectorType(_I32, _WORDS)
    node = builder.load(builder.gep(builder.bitcast(nodes, words.as_pointer()), [index]))
    node.align = 16
    lanes = 2 if isinstance(element, ir.DoubleType) else _WORDS
    floats = builder.bitcast(node, ir.VectorType(element, lanes))
    threshold = builder.extract_element(floats, _I32(0))
    return [threshold, *(builder.extract_element(node, _I32(i)) for i in (2, 3))]
