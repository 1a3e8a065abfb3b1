"""Processes that compile rKernels, started as soon as it is known how many there will be."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.dialects.task import ROperatorOp
from irkit.passes.task.form_roperators import FormROperators
from irkit.runtime.side_by_side import start_ahead

FEWEST = {"cuda": 1, "cpu": 8}
"""rOperators for which it is done: machine code of fewer is often kept, and made here in less than a process
takes to start."""


class WorkersAhead:
    """Starts them behind `form-roperators`: they import what they need while rOperators are scheduled."""

    def __init__(self, target: str) -> None:
        self._target = target

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """Nothing is known yet."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Count the rOperators."""
        if module_pass.name != FormROperators.name:
            return
        count = sum(isinstance(op, ROperatorOp) for op in module.ops)
        if count >= FEWEST[self._target]:
            start_ahead(self._target, count)

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There will be none."""
