"""What watches a pipeline."""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


class Instrument(Protocol):
    """Watches a pipeline. Called around each pass, when it is switched on; sees the module, changes
    nothing. One that checks raises UserError or BrokenPassError from `before` or `after`."""

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """A pass is about to run."""
        ...

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has run, and what it left verifies."""
        ...

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass raised, or left what an instrument or the verifier refuses."""
        ...
