"""Meaning of attention."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.attention_base import attended
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.AttentionOp: attended,
}
