"""A random graph-level program: what it is made of, its inputs, and how wrong each output may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.functions import function_named
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.state import StatePair, set_state
from irkit.dialects.types import DYNAMIC, tensor, tensor_type
from irkit.frontends.module import GraphBuilder, ImportedModel, attribute
from irkit.model_info import ModelInfo
from tools.fuzz.programs.arrays import MOST_ELEMENTS, Draw
from tools.fuzz.programs.facts import Facts, of_array, settled

# Rows for which programs with a batch are run; facts hold for all of them.
ROWS = (1, 2, 5)
TRIES = 6

Step = Callable[["RandomProgram", SSAValue], None]


class RandomProgram:
    """About `size` ops on one to three inputs, all of one batch if `batch`; `steps` are what it does.

    In some the batch stands anywhere, and more ops mix its rows; some keep state from run to run.
    """

    def __init__(self, seed: int, size: int, batch: bool, steps: Sequence[Step]) -> None:
        self.draw = Draw(seed)
        self.batch = batch
        self.anywhere = batch and self.draw.chance(0.25)
        shapes = [self._input_shape() for _ in range(self.draw.random.randint(1, 3))]
        types = [tensor(self.draw.element(), s) for s in shapes]
        symbol = self.draw.random.choice(("batch", "n", "rows of x"))
        self.b = GraphBuilder([(f"x{i}", t) for i, t in enumerate(types)], symbol)
        # What steps may take.
        self.values: list[SSAValue] = []
        self.facts: dict[SSAValue, Facts] = {}
        self._factors: dict[SSAValue, int] = {}
        self._runs = [self._input_arrays(rows) for rows in (ROWS if batch else (1,))]
        for number, value in enumerate(self.b.inputs):
            flat = np.concatenate([run[number].ravel() for run in self._runs])
            self.values.append(value)
            self.facts[value] = of_array(flat)
        for _ in range(TRIES * size):
            # Steps do nothing where they have no meaning.
            if len(self.values) >= len(self.b.inputs) + size:
                break
            self.draw.random.choice(steps)(self, self.pick())

    def _input_shape(self) -> list[int]:
        shape = self.draw.shape()
        if not self.batch or not self.draw.chance(0.9):
            return shape
        place = self.draw.random.randint(0, min(len(shape), 4)) if self.anywhere else 0
        return [*shape[:4][:place], DYNAMIC, *shape[:4][place:]]

    def _input_arrays(self, rows: int) -> list[np.ndarray]:
        shaped = [(t := tensor_type(v), t.get_shape()) for v in self.b.inputs]
        return [
            self.draw.specials(
                self.draw.array(t.element_type, [rows if s == DYNAMIC else s for s in shape])
            )
            for t, shape in shaped
        ]

    # What steps build with

    def factor(self, x: SSAValue) -> int:
        """How many times the batch x's dynamic dimension is: what is folded into it. 0 if it is of another
        size, on which nothing is built."""
        return self._factors.get(x, 1)

    def extents(self, x: SSAValue, rows: int = max(ROWS)) -> list[int]:
        """x's shape in the largest run, or in that of so many rows."""
        rows *= self.factor(x)
        return [rows if s == DYNAMIC else s for s in shape_of(x)]

    def axes(self, x: SSAValue) -> list[int]:
        """Dimensions to compute along: those that are no batch, or now and then all, which mixes rows."""
        shape = shape_of(x)
        if self.draw.chance(0.1 if self.anywhere else 0.01):
            return list(range(len(shape)))
        return [d for d, s in enumerate(shape) if s != DYNAMIC]

    def pick(self, *, like: Attribute | None = None) -> SSAValue:
        """A value, of this type if it is given; mostly one of the last, so that chains grow."""
        fits = [v for v in self.values if like is None or v.type == like]
        back = int(self.draw.random.expovariate(0.6))
        return fits[max(0, len(fits) - 1 - back)]

    def constant(self, array: np.ndarray) -> SSAValue:
        """A constant; it is known, but not picked but by who made it."""
        value = self.b.constant(array)
        self.facts[value] = of_array(array)
        return value

    def random_constant(self, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """A constant of random elements, now and then all the same."""
        array = self.draw.array(element, shape)
        if array.size and self.draw.chance(0.15):
            array = np.full_like(array, array.ravel()[0])
        return self.constant(array)

    def put(
        self,
        op: type[GraphOp],
        operands: Sequence[SSAValue],
        *facts: Facts | None,
        terms: int = 1,
        factor: int | None = None,
        **props: Any,
    ) -> SSAValue | None:
        """Append an op whose results have these `facts` (one for all, or one each); None, and nothing, if
        its verifier refuses it, it is large, or too little would be known of a result. `factor` is the
        results', if it is another than the operands'."""
        factors = {self.factor(v) for v in operands if DYNAMIC in shape_of(v)}
        if len(factors) > 1 or 0 in factors:
            return None
        try:
            types = op.inferred([tensor_type(v) for v in operands], _attributes(props))
        except VerifyException:
            return None
        sizes = [[s for s in t.get_shape() if s != DYNAMIC] for t in types]
        if any(len(s) > 5 or int(np.prod(s)) > MOST_ELEMENTS for s in sizes):
            return None
        if not self.anywhere and any(DYNAMIC in t.get_shape()[1:] for t in types):
            return None
        known = list(facts) * (len(types) if len(facts) == 1 else 1)
        kept = [
            None if f is None else settled(f, t.element_type, terms)
            for f, t in zip(known, types, strict=True)
        ]
        if any(f is None for f in kept):
            return None
        results = self.b.ops(op, *operands, **props)
        self.facts.update(zip(results, kept, strict=True))
        self._factors.update(
            dict.fromkeys(results, next(iter(factors), 1) if factor is None else factor)
        )
        self.values.extend(results)
        return results[0]

    # The whole

    def model(self) -> ImportedModel:
        """The program. Outputs are most of what nothing uses; now and then others, one twice, an input."""
        unused = [v for v in self.values if not v.uses]
        self.outputs = [v for v in unused if self.draw.chance(0.85)] or unused[-1:]
        while self.draw.chance(0.3):
            self.outputs.append(self.draw.random.choice(self.values))
        if self.draw.chance(0.05):
            array = self.draw.array(self.draw.element(), self.draw.shape(2))
            self.outputs.append(self.constant(array))
        kept = self._state() if self.draw.chance(0.15) else []
        self.outputs += [new for _, new in kept]
        self.draw.random.shuffle(self.outputs)
        names = tuple(f"y{i}" for i in range(len(self.outputs)))
        info = ModelInfo("network", self.b.names, names)
        model = self.b.finish(list(zip(names, self.outputs, strict=True)), info)
        if kept:
            pairs = [StatePair(a, self.outputs.index(new)) for a, new in kept]
            set_state(self._main(model), pairs)
        if self.draw.chance(0.05):
            self._add_function(model)
        return model

    def _main(self, model: ImportedModel) -> FuncOp:
        main = function_named(model.module, "main")
        assert main is not None
        return main

    def _add_function(self, model: ImportedModel) -> None:
        """Another function before or behind @main, which gives less; nothing calls it."""
        main = self._main(model)
        other = main.clone()
        other.sym_name = StringAttr("other")
        end = other.body.block.last_op
        assert end is not None
        end.operands = list(end.operands)[:1]
        other.update_function_type()
        for name in ("irkit.state", "irkit.outputs"):
            other.attributes.pop(name, None)
        place = InsertPoint.before(main) if self.draw.chance(0.5) else InsertPoint.after(main)
        Rewriter.insert_op(other, place)

    def _state(self) -> list[tuple[int, SSAValue]]:
        """Inputs, by number, and what each is in the next run: any value of its type, of each one once."""
        found: dict[SSAValue, int] = {}
        for number, held in enumerate(self.b.inputs):
            fits = [v for v in self.values if v.type == held.type and v not in found]
            fits = [v for v in fits if v not in self.outputs]
            if fits and DYNAMIC not in shape_of(held) and self.draw.chance(0.8):
                found[self.draw.random.choice(fits[-4:])] = number
        return [(number, new) for new, number in found.items()]

    @property
    def runs(self) -> list[list[np.ndarray]]:
        """Inputs of each run."""
        return [list(arrays) for arrays in self._runs]

    def tolerances(self) -> list[float]:
        """How far each output's elements may be from the interpreter's; `model` comes first."""
        return [4 * self.facts[v].error for v in self.outputs]


def _attributes(props: dict[str, Any]) -> dict[str, Attribute]:
    return {name: attribute(value) for name, value in props.items()}


def shape_of(value: SSAValue) -> list[int]:
    """A value's shape; DYNAMIC is its batch."""
    return list(tensor_type(value).get_shape())


def element_of(value: SSAValue) -> Attribute:
    """A value's element type."""
    return tensor_type(value).element_type
