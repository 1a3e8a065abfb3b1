"""One random program of arrays: the interpreter, before and after `functionalise` and `form-regions`, against
NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.context import IrkitContext
from irkit.dialects.program import CallOp
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import program_faults, written_arguments
from irkit.errors import UnsupportedError
from irkit.interp.program import Execution, run_program
from irkit.passes.placement.cut import Choice
from irkit.passes.placement.planning import Planner, placed
from irkit.passes.program.form_regions import FormRegions
from irkit.passes.program.functionalise import functionalised
from irkit.passes.program.insert_transfers import InsertTransfers
from irkit.passes.program.regions import region_modules
from irkit.schedule.devices import device
from irkit.schedule.links import link_to
from irkit.weights import WeightStore
from tools.fuzz.effects.programs import HOST, NOTES, Program, random_program
from tools.fuzz.effects.views import Array
from tools.fuzz.finding import Finding


def attempt(rng: random.Random) -> Finding | None:
    """Nothing, or what irkit takes otherwise than NumPy."""
    program = random_program(rng, calls=rng.random() < 0.3, effects=rng.random() < 0.3)
    seed = rng.randrange(1 << 30)
    wrong = disagreement(program, seed)
    if wrong is None:
        return None
    text = f"// inputs: seed {seed}\n{program.build().module}"
    return Finding(wrong, text.encode(), ".mlir")


def disagreement(program: Program, seed: int) -> str | None:
    """What the program means otherwise to irkit than to NumPy; None if nothing."""
    built = program.build()
    if (fault := next(program_faults(built.module), None)) is not None:
        return f"refused: '{fault.op.name}' {fault.text}"
    main = cast(FuncOp, built.module.body.block.first_op)
    inputs = program.inputs(seed)
    expected = Expected(*noted(lambda: _written_only(program.expected(inputs), program, main)))
    run = noted(lambda: run_program(built.module, built.weights, inputs, HOST))
    if (wrong := expected.difference(*run)) is not None:
        return f"the interpreter: {wrong}"
    if (wrong := of_devices(built, inputs, expected, seed)) is not None:
        return wrong
    if any(isinstance(op, CallOp) for op in main.walk()):
        return of_regions(built, inputs, expected)
    found = of_values(built, inputs)
    if found is not None and (wrong := expected.difference(found, [])) is not None:
        return f"functionalise: {wrong}"
    return None


@dataclass(frozen=True)
class Expected:
    """What NumPy returns and leaves, and what the host has noted on the way, in its order."""

    results: Sequence[Array]
    notes: Sequence[Array]

    def difference(self, found: Sequence[Array], notes: Sequence[Array]) -> str | None:
        """What is otherwise, in words."""
        wrong = _difference(found, self.results)
        if wrong is None and (other := _difference(notes, self.notes)) is not None:
            return f"what the host has noted: {other}"
        return wrong


def noted(run: Callable[[], list[Array]]) -> tuple[list[Array], list[Array]]:
    """What a run returns, and what the host has noted in it."""
    NOTES.clear()
    found = run()
    return found, list(NOTES)


def of_values(built: BuiltProgram, inputs: Sequence[Array]) -> list[Array] | None:
    """The results of the function of values; None where there is none, since a view moves that is no box."""
    main = cast(FuncOp, built.module.body.block.first_op)
    try:
        function = functionalised(main, built.weights)
    except UnsupportedError as error:
        if "whose place moves" not in str(error):
            raise
        return None
    function.verify()
    return Execution(function, built.weights, {}).run(inputs)


def of_regions(built: BuiltProgram, inputs: Sequence[Array], expected: Expected) -> str | None:
    """What the program with regions, as they are and as functions of values, means otherwise."""
    cut, context = built.module.clone(), IrkitContext(weights=built.weights)
    FormRegions().apply(context, cut)
    cut.verify()
    if (fault := next(program_faults(cut), None)) is not None:
        return f"form-regions: '{fault.op.name}' {fault.text}"
    run = noted(lambda: run_program(cut, built.weights, inputs, HOST))
    if (wrong := expected.difference(*run)) is not None:
        return f"form-regions: {wrong}"
    regions = {
        name: _in_place(module, built.weights) for name, module in region_modules(cut).items()
    }
    run = noted(lambda: run_program(cut, built.weights, inputs, HOST | regions))
    wrong = expected.difference(*run)
    return None if wrong is None else f"functionalise of regions: {wrong}"


def of_devices(
    built: BuiltProgram, inputs: Sequence[Array], expected: Expected, seed: int
) -> str | None:
    """What the program means otherwise whose parts are on devices that are drawn."""
    rng = random.Random(seed)
    cut, context = built.module.clone(), IrkitContext(weights=built.weights)
    main = next(f for f in cut.ops if isinstance(f, FuncOp))
    FormRegions().apply(context, cut)
    cpu, gpu = device("cpu2"), device("h200")
    placed(cut, main, Planner(cpu, gpu, link_to(gpu), assign=lambda c: drawn(c, rng)))
    InsertTransfers().apply(context, cut)
    cut.verify()
    if (fault := next(program_faults(cut), None)) is not None:
        return f"insert-transfers: '{fault.op.name}' {fault.text}"
    run = noted(lambda: run_program(cut, built.weights, inputs, HOST))
    if (wrong := expected.difference(*run)) is not None:
        return f"insert-transfers: {wrong}"
    regions = {
        name: _in_place(module, built.weights) for name, module in region_modules(cut).items()
    }
    run = noted(lambda: run_program(cut, built.weights, inputs, HOST | regions))
    wrong = expected.difference(*run)
    return None if wrong is None else f"functionalise of regions with devices: {wrong}"


def drawn(choice: Choice, rng: random.Random) -> list[bool]:
    """Any assignment that may be."""
    parts = range(1, len(choice.cpu) + 1)
    return [part not in choice.tied and rng.random() < 0.5 for part in parts]


def _in_place(module: ModuleOp, weights: WeightStore) -> Callable[..., None]:
    """A region as a function of values, whose results go where the caller has its arrays."""
    main = cast(FuncOp, module.body.block.first_op)
    written = written_arguments(main)

    def run(*arrays: Array) -> None:
        left = of_values(BuiltProgram(module, weights), arrays)
        if left is None:
            Execution(main, weights, {}).run(arrays)
            return
        # A value may be an argument as it was, which is about to be written.
        for number, value in zip(written, [np.copy(v) for v in left], strict=True):
            arrays[number][...] = value

    return run


def _written_only(results: list[Array], program: Program, main: FuncOp) -> list[Array]:
    """Without the arguments that nothing writes."""
    count = len(program.returned)
    return results[:count] + [results[count + n] for n in written_arguments(main)]


def _difference(found: Sequence[Array], expected: Sequence[Array]) -> str | None:
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {number} is {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if not np.array_equal(a, b):
            return f"result {number} differs"
    return None
