"""Meaning of ops on rows of a CSR matrix."""

from __future__ import annotations

from irkit.dialects import graph
from irkit.dialects.csr_base import csr_dense, csr_matmul, csr_reduce
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.CsrDenseOp: csr_dense,
    graph.CsrMatmulOp: csr_matmul,
    graph.CsrReduceOp: csr_reduce,
}
