"""Meaning of attention."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.attention_base import attended
from irkit.dialects.attention_gradient_base import key_gradient, query_gradient
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.AttentionKeyGradientOp: key_gradient,
    graph.AttentionOp: attended,
    graph.AttentionQueryGradientOp: query_gradient,
}
