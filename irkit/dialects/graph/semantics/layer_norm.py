"""Meaning of layer normalisation."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.layer_norm_base import normalised

RULES: Rules = {
    graph.LayerNormOp: normalised,
}
