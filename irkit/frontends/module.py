"""What every front end returns: a graph-level module, its weights, and what the host must know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.arith import ConstantOp, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch import BatchAnalysis
from irkit.dialects.loops import while_op
from irkit.dialects.properties import attribute
from irkit.dialects.symbols import BATCH, DIMS, dims_attribute
from irkit.dialects.types import DYNAMIC, Tensor, tensor_type
from irkit.model_info import ModelInfo
from irkit.weights import Array, WeightStore

MODEL_ATTRIBUTE = "irkit.model"
Methods = dict[str, str | tuple[str, ...]]


@dataclass
class Outputs:
    """What a model, or the last step of one, gives: named values, and which method returns which."""

    kind: Any
    values: list[tuple[str, SSAValue]]
    methods: Methods
    classes: tuple[Any, ...] | None = None
    labels: str = ""
    source: str = ""
    """The estimator's kind."""

    def info(self, **facts: Any) -> ModelInfo:
        """The ModelInfo of a model of one input "x" that gives this; `facts` are its other fields."""
        return ModelInfo(
            self.kind,
            ("x",),
            tuple(name for name, _ in self.values),
            self.methods,
            self.classes,
            label_dtype=self.labels,
            **facts,
        )


@dataclass
class ImportedModel:
    """A graph-level module with `func.func @main`, the weights it names, and its ModelInfo."""

    module: ModuleOp
    weights: WeightStore
    info: ModelInfo


# What a saved program can keep as a class label.
LABELS = (bool, int, float, str)


def refused_labels(labels: Array) -> list[str]:
    """Reasons that lie in class labels which a saved program cannot keep; none if it can."""
    # Of times NumPy makes plain integers, which would pass for labels.
    if labels.dtype.kind in "mM":
        return [f"class labels of type {labels.dtype}"]
    odd = sorted({type(v).__name__ for v in labels.tolist() if not isinstance(v, LABELS)})
    return [f"class labels of type {', '.join(odd)}"] if odd else []


class GraphBuilder:
    """Builds `@main` op by op.

    b = GraphBuilder([("x", tensor(f32, (DYNAMIC, 4)))]); y = b(AddOp, b.inputs[0], b.constant(bias));
    b.finish([("y", y)], info)
    """

    def __init__(self, inputs: Sequence[tuple[str, Tensor]], symbol: str = BATCH) -> None:
        """`symbol` names the dynamic dimensions of the inputs."""
        self.weights = WeightStore()
        self.names = tuple(name for name, _ in inputs)
        self._block = Block(arg_types=[t for _, t in inputs])
        for argument, name in zip(self._block.args, self.names, strict=True):
            argument.name_hint = name if name.isascii() and name.isidentifier() else None
        self._builder = self._outermost = Builder(InsertPoint.at_end(self._block))
        self._constants: dict[Attribute, SSAValue] = {}
        # By identity, with the array itself, so that no other one has it meanwhile.
        self._unchanging: dict[int, tuple[Array, SSAValue]] = {}
        self._symbol = symbol
        self.indexed: dict[int, int] = {}
        """The smallest extents that arguments index, by their numbers, as a front end notes them."""
        self.batch = BatchAnalysis()
        self.location: Attribute = UnknownLoc()
        """That of the ops that follow."""
        for argument in self._block.args:
            self.batch.argument(argument)

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """The function's arguments."""
        return self._block.args

    def constant(self, array: Array, hint: str = "w") -> SSAValue:
        """A weight; equal arrays share one op."""
        op: ConstantOp = constant(array, self.weights, hint)
        known = self._constants.get(op.value)
        if known is None:
            # Within a loop too they stand before it: what follows may ask for them.
            known = self._constants[op.value] = self._outermost.insert(op).result
        return known

    def unchanging(self, array: Array) -> SSAValue:
        """As `constant`, of an array that nobody writes to: its bytes are looked at once, however often it is
        asked for."""
        known = self._unchanging.get(id(array))
        if known is None:
            known = self._unchanging[id(array)] = array, self.constant(array)
        return known[1]

    def ops(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        """Append `op`; returns its results. Raises VerifyException on operands it does not take."""
        made = op.make(operands, {k: attribute(v) for k, v in props.items()})
        made.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        self.batch.visit(made)
        return self._builder.insert(made).results

    def __call__(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> SSAValue:
        """Append an op with one result; returns it."""
        return self.ops(op, *operands, **props)[0]

    def repeat(
        self,
        starts: Sequence[SSAValue],
        asked: int,
        turn: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Append a loop that goes on as long as the carried value `asked`, a boolean of no dimensions, holds;
        `turn` makes of what is carried what the next turn is given. Returns what is carried in the end. Loops
        stand in no other."""
        assert self._builder is self._outermost
        body = Block(arg_types=[v.type for v in starts])
        for argument in body.args:
            self.batch.argument(argument)
        self._builder = Builder(InsertPoint.at_end(body))
        self._builder.insert(YieldOp(*turn(body.args)))
        self._builder = self._outermost
        made = self._builder.insert(while_op(starts, asked, body))
        self.batch.visit(made)
        return made.results

    def finish(
        self,
        outputs: Sequence[tuple[str, SSAValue]],
        info: ModelInfo,
        fastmath: FastMathFlagsAttr | None = None,
    ) -> ImportedModel:
        """Close the function over `outputs` and verify the module. `fastmath`: in what its arithmetic may
        differ from its ops', because that of the model's own library does."""
        self._builder.insert(ReturnOp(*(v for _, v in outputs)))
        types = [tensor_type(v) for _, v in outputs]
        main = FuncOp("main", (list(self._block.arg_types), types), Region(self._block))
        main.attributes["irkit.inputs"] = ArrayAttr([StringAttr(n) for n in self.names])
        main.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n, _ in outputs])
        if fastmath is not None:
            main.attributes["irkit.fastmath"] = fastmath
        inputs = [tensor_type(v) for v in self._block.args]
        names = [[self._symbol] * list(t.get_shape()).count(DYNAMIC) for t in inputs]
        if (dims := dims_attribute(inputs, names)) is not None:
            main.attributes[DIMS] = dims
        module = ModuleOp([main], {MODEL_ATTRIBUTE: StringAttr(info.to_json())})
        module.verify()
        return ImportedModel(module, self.weights, info)
