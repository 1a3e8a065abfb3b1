"""How a module fails, and whether another fails alike."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.model_files import used_weights
from irkit.driver.files.printing import module_text
from irkit.driver.instruments.semantics import SemanticsChecker
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.registry import register_dialects
from irkit.errors import IrkitError
from irkit.weights import WeightStore

# What changes in a message while its module shrinks: values, places, types, numbers.
_CHANGING = re.compile(r"<.*?>|[%@#][\w#.]+|'[^']*?[\d%@][^']*'|[-+]?\d[\w.+-]*|\[[^\]]*\]")


@dataclass(frozen=True)
class Failure:
    """Two failures are alike if they are equal."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" if self.what else self.kind


class FailureTest(Protocol):
    """Says how a module fails; None if it does not. Leaves the module as it is."""

    def __call__(self, module: ModuleOp) -> Failure | None: ...


def failure_of(error: Exception) -> Failure:
    """An error as a failure: of a diagnostic its message, without what a smaller module changes in it; of
    any other the function that raised it."""
    if isinstance(error, UserError | IrkitError):
        # A meaning is changed in some element or another.
        message = re.sub(r"(changed the meaning of the module).*", r"\1", str(error), flags=re.S)
        return Failure(type(error).__name__, _CHANGING.sub("_", message))
    return Failure(type(error).__name__, _raised_by(error))


def _raised_by(error: Exception) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"in {Path(code.co_filename).name}, {code.co_qualname}"


class Catcher:
    """`with catcher: ...` keeps what is raised in `error`."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Catcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


class PipelineFailure:
    """How a pipeline fails on a module: what a pass raises, invalid IR or another level than it states, and
    with `seed` a meaning that is not kept (`--check-semantics`)."""

    def __init__(
        self, passes: Sequence[ModulePass], weights: WeightStore, seed: int | None = None
    ) -> None:
        self._passes, self._weights, self._seed = list(passes), weights, seed

    def __call__(self, module: ModuleOp) -> Failure | None:
        copy = module.clone()
        # Passes rewrite modules, and add weights.
        weights = self._weights.restricted_to(set(self._weights))
        ctx = IrkitContext(weights=weights)
        register_dialects(ctx)
        timer, catcher = Timer(), Catcher()
        with catcher:
            checks = (
                [] if self._seed is None else [SemanticsChecker(copy, weights, self._seed, timer)]
            )
            PipelineRunner(ctx, timer, checks).run(copy, self._passes)
        return None if catcher.error is None else failure_of(catcher.error)


class CommandFailure:
    """How a command fails on a module: its exit code. `%s` is the module's file, else it comes last."""

    def __init__(self, command: str, weights: WeightStore) -> None:
        self._words, self._weights = shlex.split(command), weights
        if not self._words:
            raise UserError("--test expects a command", "irkit-reduce")

    def __call__(self, module: ModuleOp) -> Failure | None:
        """Raises UserError if the command cannot be run."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "module.mlir")
            path.write_text(module_text(module), encoding="utf-8")
            kept = self._weights.restricted_to(used_weights(module))
            if kept:
                kept.save(path.with_suffix(".safetensors"))
            words = [w.replace("%s", str(path)) for w in self._words]
            if words == self._words:
                words.append(str(path))
            code = self._run(words)
        return Failure(f"exit code {code}", "") if code else None

    def _run(self, words: list[str]) -> int:
        try:
            return subprocess.run(words, capture_output=True, check=False).returncode
        except OSError as error:
            raise UserError(f"--test: cannot run '{words[0]}': {error.strerror}") from None
