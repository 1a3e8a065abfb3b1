"""What watches a pipeline run: dumps of the IR and a table of times. All of it goes to stderr."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from irkit.driver.diagnostics import UserError


def module_text(module: ModuleOp, generic: bool = False, debuginfo: bool = False) -> str:
    """`module` as text, ending in a newline."""
    stream = io.StringIO()
    Printer(stream, print_generic_format=generic, print_debuginfo=debuginfo).print_op(module)
    return stream.getvalue() + "\n"


class Timer:
    """Adds up seconds by name, in order of first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + took

    def table(self) -> str:
        """One line per name: milliseconds, share of the total."""
        total = sum(self.seconds.values())
        rows = [*self.seconds.items(), ("total", total)]
        lines = ["===- execution time -===", "        ms       %  name"]
        for name, seconds in rows:
            share = 100.0 * seconds / total if total else 0.0
            lines.append(f"{1e3 * seconds:10.2f}  {share:5.1f}%  {name}")
        return "\n".join(lines) + "\n"


class Dumper:
    """Prints the module around passes, as the `--print-ir-*` flags ask."""

    def __init__(self, options: argparse.Namespace, stderr: IO[str]) -> None:
        self._stderr = stderr
        self._options = options
        self._directory = Path(options.tree_dir) if options.tree_dir else None
        self._number = 0
        after = options.print_ir_after_change or options.print_ir_after_failure
        asked = options.print_ir_before_all or options.print_ir_after_all or after
        self._after_all = options.print_ir_after_all or (self._directory is not None and not asked)
        self._last = ""

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """A pass is about to run."""
        name = module_pass.name
        if self._options.print_ir_after_change:
            self._last = self._text(module)
        if self._options.print_ir_before_all:
            self._dump("before", name, self._text(module))

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has succeeded."""
        name = module_pass.name
        if self._after_all:
            self._dump("after", name, self._text(module))
        elif self._options.print_ir_after_change and (text := self._text(module)) != self._last:
            self._dump("after", name, text)

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has failed."""
        name = module_pass.name
        if self._options.print_ir_after_failure:
            self._dump("after failure of", name, module_text(module, generic=True))

    def _text(self, module: ModuleOp) -> str:
        options = self._options
        return module_text(module, options.print_op_generic, options.print_debuginfo)

    def _dump(self, when: str, name: str, text: str) -> None:
        if self._directory is None:
            self._stderr.write(f"// -----// IR dump {when} {name} //----- //\n{text}\n")
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            file = self._directory / f"{self._number:02}_{when.replace(' ', '_')}_{name}.mlir"
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write to '{self._directory}': {error.strerror}") from None
        self._number += 1
