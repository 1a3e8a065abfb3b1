"""A file that repeats an internal error: a FileCheck test with the IR before the pass that failed.

Nothing is kept for it while all goes well: on an error the input is read again, and the passes that succeeded
are run again, up to the one that did not.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.model_files import used_weights, write_weights
from irkit.driver.files.parsing import parse_module
from irkit.driver.files.printing import module_text
from irkit.driver.instruments.ir_dumps import exact_spec

# Flags that matter for whether a pass fails, by their names in the parsed options.
_KEPT = {
    "check_semantics": "--check-semantics",
    "cross_check": "--cross-check",
    "verify_roundtrip": "--verify-roundtrip",
    "disable_verify": "--disable-verify",
    "allow_unregistered_dialect": "--allow-unregistered-dialect",
}


def kept_flags(options: object) -> list[str]:
    """Those of irkit-opt's options that a reproducer repeats."""
    flags = [flag for name, flag in _KEPT.items() if getattr(options, name, False)]
    if not getattr(options, "verify_each", True):
        flags.append("--no-verify-each")
    if seed := getattr(options, "seed", 0):
        flags.append(f"--seed={seed}")
    if (target := getattr(options, "target", "mlir")) != "mlir":
        flags.append(f"--target={target}")
    plugins: list[str] = getattr(options, "plugins", [])
    return [*flags, *(f"--load-plugin={Path(path).resolve()}" for path in plugins)]


@dataclass
class Reproducer:
    """An instrument: how far a run has come. `text` is the input, `name` its file, `context` makes a fresh
    context for it, `flags` what else irkit-opt is given."""

    text: str
    name: str
    context: Callable[[], IrkitContext]
    flags: Sequence[str] = ()
    passes: Sequence[ModulePass] = ()
    done: list[ModulePass] = field(default_factory=list[ModulePass])

    def start(self, passes: Sequence[ModulePass]) -> None:
        """A pipeline begins."""
        self.passes, self.done = passes, []

    @property
    def in_pass(self) -> bool:
        """Whether there are passes that have not succeeded."""
        return len(self.done) < len(self.passes)

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """Nothing to keep."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has succeeded."""
        self.done.append(module_pass)

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """The module may be broken: it is made again if it is needed."""

    def write(self, message: str) -> str:
        """Write the test and the weights beside it; returns its path. `message` says what went wrong."""
        ctx = self.context()
        module = parse_module(ctx, self.text, self.name)
        for module_pass in self.done:
            module_pass.apply(ctx, module)
        rest = [exact_spec(p) for p in self.passes[len(self.done) :]]
        words = ["irkit-opt", "%s", *(["-p", ",".join(rest)] if rest else []), *self.flags]
        path = write_test(words, message, self._printed(module))
        write_weights(path, ctx.weights, used_weights(module))
        return path

    def _printed(self, module: ModuleOp) -> str:
        """The custom form, unless it is that which cannot be read again."""
        text = module_text(module)
        try:
            parse_module(self.context(), text, "<reproducer>")
        except UserError:
            return module_text(module, generic=True)
        return text


def write_test(words: Sequence[str], message: str, text: str) -> str:
    """Write a FileCheck test that runs `words` on `text`, and returns its path.

    It fails until what `message` says is put right.
    """
    run = " ".join(w if w == "%s" else shlex.quote(w) for w in words)
    first = message.split("\n", 1)[0].replace("RUN:", "RUN")
    head = f"// RUN: {run} | filecheck %s\n\n// Fails until this is put right: {first}\n"
    with tempfile.NamedTemporaryFile(
        "w", prefix=f"{words[0]}-", suffix=".mlir", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"{head}// CHECK: {{{{.}}}}\n\n{text}")
    return str(Path(file.name))
