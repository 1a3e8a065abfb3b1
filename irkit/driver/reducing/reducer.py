"""The search: reductions of each kind, one after another, until none helps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.parsing import parse_module
from irkit.driver.files.printing import module_text
from irkit.driver.reducing import edits, shapes
from irkit.driver.reducing.delta import minimal
from irkit.driver.registry import register_dialects
from irkit.driver.verification.verifier import check_module
from irkit.weights import WeightStore

T = TypeVar("T")
MOST_TESTS = 2000


@dataclass
class Reducer:
    """Makes modules small that `interesting` holds for.

    As in mlir-reduce and C-Reduce (J. Regehr et al., "Test-Case Reduction for C Compiler Bugs", PLDI
    2012), passes of several kinds run until none of them changes anything; candidates that do not
    verify are not tried. `weights` gets what smaller constants need. Ends after `most_tests` tests or
    `seconds` at the latest, with what was reached.
    """

    interesting: Callable[[ModuleOp], bool]
    weights: WeightStore
    most_tests: int = MOST_TESTS
    seconds: float = float("inf")
    tests: int = 0
    _until: float = field(default=float("inf"), init=False)

    def reduce(self, module: ModuleOp) -> ModuleOp:
        """A module at most as large that is interesting too; `module` is, and stays as it is."""
        self._until = time.monotonic() + self.seconds
        steps = (
            self._fewer_outputs,
            self._fewer_ops,
            self._fewer_inputs,
            self._fewer_notes,
            self._plainer_constants,
            self._smaller_shapes,
        )
        before, text = "", module_text(module)
        while text != before and not self._exhausted:
            for step in steps:
                module = step(module)
            before, text = text, module_text(module)
        return module

    @property
    def _exhausted(self) -> bool:
        return self.tests >= self.most_tests or time.monotonic() > self._until

    def _accepts(self, candidate: ModuleOp | None) -> bool:
        if candidate is None or self._exhausted:
            return False
        try:
            check_module(candidate)
        except UserError:
            return False
        self.tests += 1
        return self.interesting(candidate)

    def _fewest(
        self,
        module: ModuleOp,
        items: Sequence[T],
        keep: Callable[[Sequence[T]], ModuleOp | None],
    ) -> ModuleOp:
        """The module with as few of `items` as can be; `keep` makes it of those that stay."""
        kept = minimal(items, lambda some: self._accepts(keep(some)))
        made = keep(kept) if len(kept) < len(items) else module
        assert made is not None
        return made

    def _fewer_ops(self, module: ModuleOp) -> ModuleOp:
        numbers = edits.droppable(module)
        whole = set(numbers)
        return self._fewest(
            module, numbers, lambda some: edits.without_ops(module, whole.difference(some))
        )

    def _fewer_outputs(self, module: ModuleOp) -> ModuleOp:
        for number, (_, end) in enumerate(list(edits.functions(module))):
            numbers = range(len(end.operands))
            module = self._fewest(
                module, numbers, lambda some, m=module, n=number: edits.with_outputs(m, n, some)
            )
        return module

    def _fewer_inputs(self, module: ModuleOp) -> ModuleOp:
        for number, (function, _) in enumerate(list(edits.functions(module))):
            numbers = range(len(function.body.block.args))
            module = self._fewest(
                module, numbers, lambda some, m=module, n=number: edits.with_inputs(m, n, some)
            )
        return module

    def _fewer_notes(self, module: ModuleOp) -> ModuleOp:
        return self._fewest(
            module, edits.notes_of(module), lambda some: edits.with_notes(module, some)
        )

    def _plainer_constants(self, module: ModuleOp) -> ModuleOp:
        for number in edits.constants(module):
            candidates = (edits.with_splat(module, number, value) for value in (0, 1))
            module = next((c for c in candidates if c and self._accepts(c)), module)
        return module

    def _smaller_shapes(self, module: ModuleOp) -> ModuleOp:
        for size in shapes.sizes(module):
            candidates = (self._resized(module, size, to) for to in shapes.smaller_than(size))
            module = next((c for c in candidates if c and self._accepts(c)), module)
        return module

    def _resized(self, module: ModuleOp, size: int, to: int) -> ModuleOp | None:
        ctx = IrkitContext(weights=self.weights)
        register_dialects(ctx)
        with suppress(UserError):
            return parse_module(ctx, shapes.resized(module, size, to, self.weights), "<reduced>")
        return None
