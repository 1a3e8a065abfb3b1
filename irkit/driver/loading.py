"""Read a module with its weights, and bring it to a level: what every tool starts with."""

from __future__ import annotations

from typing import IO

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.boundary import Boundary
from irkit.driver.checking import check_module
from irkit.driver.diagnostics import UserError
from irkit.driver.inputs import read_text, read_weights
from irkit.driver.instruments import Timer
from irkit.driver.parsing import parse_module
from irkit.driver.pipelines import build_pipeline, standard_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.driver.reproducing import Reproducer
from irkit.driver.running import PipelineRunner
from irkit.errors import InvalidModelError
from irkit.interp import level_of


def make_context(path: str, allow_unregistered: bool = False) -> IrkitContext:
    """A fresh context that knows every dialect, with the weights beside `path`."""
    ctx = IrkitContext(allow_unregistered=allow_unregistered)
    ctx.weights = read_weights(path)
    register_dialects(ctx)
    return ctx


def parse(text: str, name: str = "<module>") -> ModuleOp:
    """A module from MLIR text; `name` stands in its locations and in errors.

    Raises InvalidModelError, with the place, for text that does not parse or verify.
    """
    ctx = IrkitContext()
    register_dialects(ctx)
    try:
        module = parse_module(ctx, text, name)
        check_module(module)
    except UserError as error:
        place = error.diagnostic.place
        raise InvalidModelError(f"{place}: {error}" if place is not None else str(error)) from None
    return module


def load_module(path: str, stdin: IO[str], boundary: Boundary) -> tuple[IrkitContext, ModuleOp]:
    """The verified module in file `path` (`-` is `stdin`) and its context. Raises UserError."""
    text, name = read_text(path, stdin)
    boundary.input_name, boundary.input_text = path, text
    boundary.sources.add(name, text)
    boundary.reproducer = Reproducer(text, name, lambda: make_context(path))
    ctx = make_context(path)
    module = parse_module(ctx, text, name)
    check_module(module)
    return ctx, module


def bring_to_level(
    ctx: IrkitContext,
    module: ModuleOp,
    level: str,
    device: str | None = None,
    reproducer: Reproducer | None = None,
) -> None:
    """Run the standard pipeline on `module`, in place, up to `level`; none if it is there already.

    `reproducer` follows it.

    Raises UserError if a pass fails or `level` is behind.
    """
    start = level_of(module)
    if start == level:
        return
    passes = build_pipeline(standard_pipeline(start, level, device), all_passes())
    if reproducer is None:
        return PipelineRunner(ctx, Timer()).run(module, passes)
    reproducer.start(passes)
    PipelineRunner(ctx, Timer(), [reproducer]).run(module, passes)
