"""Meaning of products with matrices of 4-bit integers."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.nibbles import nibble_matmul

RULES: Rules = {graph.NibbleMatmulOp: nibble_matmul}
