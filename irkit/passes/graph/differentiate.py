"""`differentiate`: a function's derivatives, as a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.context import weights_of
from irkit.dialects.functions import function_named
from irkit.dialects.graph.gradients import has_gradient
from irkit.errors import UnsupportedError
from irkit.model_info import ModelInfo
from irkit.passes.graph.differentiation.function import (
    INPUTS,
    OUTPUTS,
    Differentiation,
    differentiated,
    names_of,
)

MODES = ("reverse", "forward", "gradient")
MODEL = "irkit.model"


@dataclass(frozen=True)
class Differentiate(ModulePass):
    """Make a function one that computes its derivatives too, by the rules of its ops.

    `mode`: "reverse" gives the product of cotangents with the Jacobian: behind the arguments come cotangents
    of the results `of`, behind the results gradients of the arguments `with_respect_to`. "forward" gives the
    product of the Jacobian with tangents: behind the arguments come tangents of `with_respect_to`, behind
    the results those of `of`. "gradient" is "reverse" of one result of one element, whose cotangent is 1.
    Arguments and results are named as `irkit.inputs` and `irkit.outputs` have them; without names, all of
    floats are meant. `value` false: the function's own results are left out. `into`: the name of the
    function that is made, beside the one it is made of; without one it takes its place.

    What is made is plain graph ops: the pass may be applied again, to derivatives of derivatives. Sums are
    in the order in which values are read. Integers and booleans have no gradient. A loop runs again from its
    last round to its first in reverse mode: what it carries, and what its products give, is stacked, a row
    for each round; sums of products over all rounds, such as gradients of weights, are one product of the
    stacks behind it. With `chunked`, loops of 16 rounds or more are loops over chunks of the square root of
    their rounds: what a chunk begins with is stacked alone, and the way back runs each chunk again. A loop
    that asks (`scf.while`) carries tangents beside what it carries; in reverse mode it is one of as many
    rounds as its test allows, by a whole number that it counts, and one that nothing bounds is refused.
    What is in a segment (`loc("segment NAME"(...))`) of a function with loops is computed anew on the way
    back, and not kept. Layers that have no rule of their own (recurrent ones, batch normalisation) become
    what they are composed of, recurrent ones of more than 32 steps as loops.

    Refused: an argument that no result hangs on, unless `allow_unused` (its gradient is then zeros), ops
    without a rule, extents that are not known.

    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = graph.sin %x : (tensor<8xf32>) -> tensor<8xf32>
      func.return %y : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<8xf32>, %cotangent: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %y = graph.sin %x : (tensor<8xf32>) -> tensor<8xf32>
      %0 = graph.cos %x : (tensor<8xf32>) -> tensor<8xf32>
      %1 = graph.mul %cotangent, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      func.return %y, %1 : tensor<8xf32>, tensor<8xf32>
    }
    ```
    """

    name = "differentiate"
    function: str = "main"
    mode: str = "reverse"
    with_respect_to: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    value: bool = True
    allow_unused: bool = False
    chunked: bool = False
    into: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        function = self._function(op)
        made = differentiated(function, self._ask(function), weights_of(ctx))
        if self.into:
            made.sym_name = StringAttr(self.into)
            Rewriter.insert_op(made, InsertPoint.after(function))
        else:
            Rewriter.replace_op(function, made, [])
        if made.sym_name.data == "main":
            _update_info(op, made)

    def _function(self, module: ModuleOp) -> FuncOp:
        """The one that is named. Raises UnsupportedError for options that mean nothing."""
        if self.mode not in MODES:
            raise UnsupportedError(f"mode '{self.mode}': expected {', '.join(MODES)}")
        function = function_named(module, self.function)
        if function is None or len(function.body.blocks) != 1:
            raise UnsupportedError(f"there is no function '@{self.function}' with a body")
        if self.into and function_named(module, self.into) is not None:
            raise UnsupportedError(f"there is a function '@{self.into}' already")
        return function

    def _ask(self, function: FuncOp) -> Differentiation:
        block = function.body.block
        end = block.last_op
        assert end is not None
        return Differentiation(
            "forward" if self.mode == "forward" else "reverse",
            _numbers(
                self.with_respect_to,
                names_of(function, INPUTS),
                [has_gradient(v) for v in block.args],
            ),
            _numbers(self.of, names_of(function, OUTPUTS), [has_gradient(v) for v in end.operands]),
            seeded=self.mode != "gradient",
            value=self.value,
            allow_unused=self.allow_unused,
            chunked=self.chunked,
        )


def _numbers(asked: Sequence[str], names: Sequence[str], floats: Sequence[bool]) -> tuple[int, ...]:
    """Numbers of what is named. Raises UnsupportedError for a name that nothing has."""
    if not asked:
        return tuple(n for n, f in enumerate(floats) if f)
    if missing := [f"'{name}'" for name in asked if name not in names]:
        known = ", ".join(f"'{n}'" for n in names)
        raise UnsupportedError(f"nothing has this name (there are {known}):", missing)
    return tuple(names.index(name) for name in asked)


def _update_info(module: ModuleOp, main: FuncOp) -> None:
    """What the host is told of a model is no longer what it computes."""
    facts = module.attributes.get(MODEL)
    if isinstance(facts, StringAttr):
        source = ModelInfo.from_json(facts.data).source
        info = ModelInfo(
            "network", tuple(names_of(main, INPUTS)), tuple(names_of(main, OUTPUTS)), source=source
        )
        module.attributes[MODEL] = StringAttr(info.to_json())
