"""`--html`: a page that steps through the passes."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.driver.files.model_files import write_text
from irkit.driver.files.printing import module_text
from irkit.viewing.passes import PassesPage


class PageWriter:
    """The instrument behind `--html`: writes the page at the end, or when a pass fails."""

    def __init__(self, module: ModuleOp, path: str, title: str) -> None:
        self._path, self._page = path, PassesPage(title)
        self._page.start(module_text(module))

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """The text before is the one after the pass before."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Adds a step."""
        self._page.add(
            str(module_pass.pipeline_pass_spec(include_default=True)), seconds, module_text(module)
        )

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Adds the step that failed, and writes what there is."""
        spec = str(module_pass.pipeline_pass_spec(include_default=True))
        self._page.add(spec, seconds, module_text(module, generic=True), "this pass failed")
        self.write()

    def write(self) -> None:
        """Write the page. Raises UserError."""
        write_text(self._path, self._page.html())
