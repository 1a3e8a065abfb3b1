"""Processes that compile rKernels for a GPU, started as soon as it is known how many there will be."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.dialects.task import ROperatorOp
from irkit.passes.task.form_roperators import FormROperators
from irkit.runtime.side_by_side import start_ahead


class WorkersAhead:
    """Starts them behind `form-roperators`: they import what they need while rOperators are scheduled."""

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """Nothing is known yet."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Count the rOperators."""
        if module_pass.name == FormROperators.name:
            start_ahead("cuda", sum(isinstance(op, ROperatorOp) for op in module.ops))

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There will be none."""
