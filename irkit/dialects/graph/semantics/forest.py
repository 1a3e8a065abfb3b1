"""Meaning of forests."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.forest_base import forest_sums
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.ForestOp: forest_sums,
}
