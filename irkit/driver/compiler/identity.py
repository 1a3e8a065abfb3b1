"""What identifies a model: a digest of its functions as they are computed, whatever they are compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.driver.compiler.fingerprint import fingerprint
from irkit.driver.files.model_files import used_weights
from irkit.passes.tensor.propagate_fastmath import FASTMATH

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

_APART = (FASTMATH, "irkit.inputs", "irkit.outputs")
"""Attributes of functions that change no model: how functions are approximated, and names of arrays."""


def model_digest(imported: ImportedModel) -> str:
    """Digest of ops, constants and weights of a model before it is compiled: no names of values, no places in
    files, no values that state begins with."""
    module, weights = imported.module, imported.weights
    used = sorted(used_weights(module))
    held = [(name, weights.digest(name) if name in weights else "") for name in used]
    return fingerprint((_plain_text(module), held))[:32]


def _plain_text(module: ModuleOp) -> str:
    copy = module.clone()
    copy.attributes.clear()
    for op in copy.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
        if isinstance(op, FuncOp):
            for name in _APART:
                op.attributes.pop(name, None)
    return str(copy)
