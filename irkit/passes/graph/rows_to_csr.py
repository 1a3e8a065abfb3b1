"""`rows-to-csr`: a function of dense rows as one of the rows of a CSR matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.functions import function_named, is_straight
from irkit.dialects.graph import (
    AddOp,
    ConcatOp,
    CsrDenseOp,
    CsrMatmulOp,
    CsrReduceOp,
    GatherOp,
    MatmulOp,
    MaxOp,
    MinOp,
    ReduceOp,
    ReshapeOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.symbols import DIMS, STORED, argument_symbols, dims_attribute
from irkit.dialects.types import DYNAMIC, int_array, ints, numpy_dtype, tensor, tensor_type
from irkit.errors import UnsupportedError
from irkit.model_info import ModelInfo
from irkit.passes.graph.stored_elements import Node, Stored, elementwise
from irkit.remarks import applied
from irkit.weights import Array, WeightStore

MODEL = "irkit.model"
NAME = "RowsToCsr"
PARTS = ("data", "indices", "starts", "ends")
LINEAR = frozenset(("abs", "div", "f32", "f64", "mul", "neg"))
"""Steps of which it does not matter whether what is stored twice is added up before or after."""


@dataclass(frozen=True)
class RowsToCsr(ModulePass):
    """Make the one argument, rows×columns of f32 or f64, rows of a CSR matrix.

    They are `data`, `indices`, `starts` and `ends`. Products with a constant matrix and reductions of columns
    are computed of what is stored. Elementwise ops before them, with constants and with one value a row,
    become their steps; picked columns become a mask and rows of zeros of the matrix. A product is of
    what is 0 where nothing is stored; a row may be scaled, by what is taken to be finite and not 0.
    What reads values side by side reads each of them; products and reductions of these are put together.
    Everything behind these is as it was.

    Elements that are stored twice are each changed by themselves, as scikit-learn's estimators do; sums
    of a row run in the order in which it is stored. Raises UnsupportedError, naming the op, for a function
    that reads its rows otherwise; with `dense` such a function has its rows made dense by `graph.csr_dense`,
    of which what is absent is 0, or NaN if the facts about the model say so.

    ```mlir
    func.func @main(%x: tensor<?x40xf64>) -> tensor<?x3xf64> {
      %s = arith.constant dense_resource<scale> : tensor<40xf64>
      %w = arith.constant dense_resource<coef> : tensor<40x3xf64>
      %0 = graph.div %x, %s : (tensor<?x40xf64>, tensor<40xf64>) -> tensor<?x40xf64>
      %1 = graph.matmul %0, %w : (tensor<?x40xf64>, tensor<40x3xf64>) -> tensor<?x3xf64>
      func.return %1 : tensor<?x3xf64>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x_data: tensor<1x?xf64>, %x_indices: tensor<1x?xi32>, %x_starts: tensor<?xi64>,
        %x_ends: tensor<?xi64>) -> tensor<?x3xf64>
        attributes {irkit.dims = [["stored"], ["stored"], ["batch"], ["batch"]]} {
      %s = arith.constant dense_resource<scale> : tensor<40xf64>
      %w = arith.constant dense_resource<coef> : tensor<40x3xf64>
      %1 = graph.csr_matmul %x_data, %x_indices, %x_starts, %x_ends, %w, %s {steps = ["div x a0"]}
        : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<40x3xf64>, tensor<40xf64>)
          -> tensor<?x3xf64>
      func.return %1 : tensor<?x3xf64>
    }
    ```
    """

    name = "rows-to-csr"

    dense: bool = False
    # Its arguments are others.
    redefines: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = function_named(op, "main")
        if main is None or not is_straight(main):
            raise UnsupportedError("the module has no straight @main")
        columns = _columns(main)
        facts = op.attributes.get(MODEL)
        info = ModelInfo.from_json(facts.data) if isinstance(facts, StringAttr) else None
        conversion = _Conversion(main, weights_of(ctx))
        conversion.run(None if not self.dense else _absent(info))
        if info is not None:
            names = tuple(f"{info.inputs[0]}.{part}" for part in PARTS)
            once = conversion.once or self.dense
            info = replace(
                info, inputs=names, stored=columns, stored_once=once, stored_dense=self.dense
            )
            op.attributes[MODEL] = StringAttr(info.to_json())


def _absent(info: ModelInfo | None) -> float:
    """What an element is that a sparse row has not."""
    return np.nan if info is not None and info.absent == "nan" else 0.0


def _columns(main: FuncOp) -> int:
    """How many columns the one argument has. Raises UnsupportedError for others."""
    arguments = main.body.block.args
    shape = tensor_type(arguments[0]).get_shape() if len(arguments) == 1 else ()
    if len(shape) != 2 or shape[0] != DYNAMIC or shape[1] < 1:
        raise UnsupportedError("@main has not one argument, rows of some columns")
    element = tensor_type(arguments[0]).element_type
    if str(element) not in ("f32", "f64"):
        raise UnsupportedError(f"rows of {element}")
    return shape[1]


@dataclass
class _Conversion:
    """One walk through a function, in the order of its text."""

    main: FuncOp
    weights: WeightStore
    known: dict[SSAValue, Stored] = field(default_factory=dict[SSAValue, Stored])
    beside: dict[SSAValue, list[SSAValue]] = field(default_factory=dict[SSAValue, list[SSAValue]])
    """Values that are others side by side."""
    parts_of: list[Operation] = field(default_factory=list[Operation])
    """Ops that were made of those that read such values, each for one of them."""
    once: bool = False
    constants: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])

    def run(self, absent: float | None) -> None:
        """Rewrite the function in place; where `absent` is given, for dense rows that have it elsewhere."""
        block = self.main.body.block
        (x,) = block.args
        self.columns = tensor_type(x).get_shape()[1]
        element = tensor_type(x).element_type
        ((symbol,),) = argument_symbols(self.main)
        hint = x.name_hint or "x"
        self.known[x] = Stored(Node(), element, np.zeros(1, numpy_dtype(element)))
        types = (
            tensor(element, (1, DYNAMIC)),
            tensor(i32, (1, DYNAMIC)),
            tensor(i64, (DYNAMIC,)),
            tensor(i64, (DYNAMIC,)),
        )
        self.parts = [block.insert_arg(t, 1 + n) for n, t in enumerate(types)]
        for value, part in zip(self.parts, PARTS, strict=True):
            value.name_hint = f"{hint}_{part}"
        if absent is None:
            dead: list[Operation] = []
            for op in block.ops:
                if self._visit(op):
                    dead += [*self.parts_of, op]
                self.parts_of = []
            for op in reversed(dead):
                Rewriter.erase_op(op)
        else:
            self._make_dense(block, x, absent)
        block.erase_arg(x)
        self.main.update_function_type()
        given = self.main.attributes.get("irkit.inputs")
        own = hint
        if isa(given, ArrayAttr[StringAttr]):
            (own,) = (name.data for name in given)
        self.main.attributes["irkit.inputs"] = ArrayAttr([StringAttr(f"{own}.{p}") for p in PARTS])
        dims = dims_attribute(types, [[STORED], [STORED], [symbol], [symbol]])
        assert dims is not None
        self.main.attributes[DIMS] = dims

    def _make_dense(self, block: Block, x: SSAValue, absent: float) -> None:
        """All that reads `x` reads dense rows."""
        props = {"columns": IntegerAttr(self.columns, i64), "initial": FloatAttr(absent, f64)}
        made = CsrDenseOp.make(self.parts, props)
        Rewriter.insert_op(made, InsertPoint.at_start(block))
        made.results[0].name_hint = x.name_hint
        x.replace_all_uses_with(made.results[0])

    def _visit(self, op: Operation) -> bool:
        """Follow an op; whether it is of no use any more."""
        if not any(v in self.known or v in self.beside for v in op.operands):
            return False
        if isinstance(op, ReturnOp) or not isinstance(op, GraphOp):
            raise UnsupportedError("rows that are themselves a result")
        if isinstance(op, ConcatOp):
            self._join(op)
        elif any(v in self.beside for v in op.operands):
            self._spread(op)
        elif isinstance(op, MatmulOp) and op.operands[0] in self.known:
            self._matmul(op)
        elif isinstance(op, ReduceOp):
            self._reduce(op)
        elif isinstance(op, GatherOp):
            self.known[op.results[0]] = self._gather(op)
        else:
            operands = [self._operand(op, v) for v in op.operands]
            self.known[op.results[0]] = elementwise(op, operands, lambda a, c: self._full(op, a, c))
        return True

    # Values side by side

    def _join(self, op: ConcatOp) -> None:
        parts = [part for v in op.operands for part in self.beside.get(v, [v])]
        if op.axis.value.data != 1 or not all(part in self.known for part in parts):
            raise UnsupportedError(f"'{op.name}' of what is stored beside what is not")
        self.beside[op.results[0]] = parts

    def _spread(self, op: GraphOp) -> None:
        """An op for each of the values side by side; what they give is side by side too, or put together."""
        wide = next(v for v in op.operands if v in self.beside)
        widths = [tensor_type(part).get_shape()[1] for part in self.beside[wide]]
        ends = np.cumsum(widths).tolist()
        if isinstance(op, GatherOp) or (isinstance(op, ReduceOp) and ints(op.axes) != [1]):
            raise UnsupportedError(f"'{op.name}' of what is concatenated")
        made: list[GraphOp] = []
        for number, (end, width) in enumerate(zip(ends, widths, strict=True)):
            here = slice(end - width, end)
            operands = [self._share(op, v, number, here, ends[-1]) for v in op.operands]
            part = type(op).make(operands, dict(op.properties))
            part.location = op.location
            Rewriter.insert_op(part, InsertPoint.before(op))
            made.append(part)
        self.parts_of += made
        if isinstance(op, MatmulOp | ReduceOp):
            self._put_together(op, made)
        for part in made:
            self._visit(part)
        if not isinstance(op, MatmulOp | ReduceOp):
            self.beside[op.results[0]] = [part.results[0] for part in made]

    def _share(
        self, op: GraphOp, value: SSAValue, number: int, here: slice, width: int
    ) -> SSAValue:
        """What one of the values side by side has to do with an operand."""
        if value in self.beside:
            return self.beside[value][number]
        array = constant_array(value, self.weights)
        if isinstance(op, MatmulOp) and array is not None and array.ndim == 2:
            return self._constant(op, np.ascontiguousarray(array[here]))
        shape = tensor_type(value).get_shape()
        if not isinstance(op, MatmulOp) and (not shape or shape[-1] != width or width == 1):
            return value
        if array is None or isinstance(op, MatmulOp):
            raise UnsupportedError(f"'{op.name}' of what is concatenated and of a computed matrix")
        return self._constant(op, np.ascontiguousarray(array[..., here]))

    def _put_together(self, op: MatmulOp | ReduceOp, made: list[GraphOp]) -> None:
        kind = op.kind.data if isinstance(op, ReduceOp) else "sum"
        both = {"max": MaxOp, "min": MinOp, "sum": AddOp}.get(kind)
        if both is None:
            raise UnsupportedError(f"'{op.name}' {kind} of what is concatenated")
        total = made[0].results[0]
        for part in made[1:]:
            step = both.make([total, part.results[0]])
            Rewriter.insert_op(step, InsertPoint.before(op))
            total = step.results[0]
        op.results[0].replace_all_uses_with(total)

    # Values that stay rows×columns

    def _gather(self, op: GatherOp) -> Stored:
        columns = constant_array(op.indices, self.weights)
        if columns is None or columns.ndim != 1 or op.axis.value.data != 1:
            raise UnsupportedError(f"'{op.name}' of no known columns")
        return self.known[op.data].picked(columns.astype(np.int64))

    def _operand(self, op: GraphOp, value: SSAValue) -> Stored | Array | SSAValue:
        """An operand of an elementwise op: of a constant one element or one a column, else one a row."""
        if value in self.known:
            return self.known[value]
        array = constant_array(value, self.weights)
        shape = tensor_type(value).get_shape()
        if array is not None and all(size == 1 for size in shape[:-1]):
            return np.ascontiguousarray(array).reshape(-1)
        if array is None and shape == (DYNAMIC, 1):
            return value
        raise UnsupportedError(f"'{op.name}' with an operand of {value.type}")

    def _full(self, op: Operation, array: Array, columns: Array | None) -> SSAValue:
        """A constant for all columns of the rows; what those have that are not picked does not matter."""
        if columns is not None and len(array) > 1:
            whole = np.ones(self.columns, array.dtype)
            whole[columns] = array
            array = whole
        return self._constant(op, array)

    def _constant(self, op: Operation, array: Array) -> SSAValue:
        """One op for equal arrays: what is read twice is one operand."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            made = constant(np.ascontiguousarray(array), self.weights)
            Rewriter.insert_op(made, InsertPoint.before(op))
            self.constants[key] = made.result
        return self.constants[key]

    # What is computed of rows

    def _matmul(self, op: MatmulOp) -> None:
        stored, matrix = self.known[op.a], constant_array(op.b, self.weights)
        if matrix is None or matrix.ndim != 2 or not stored.is_sparse:
            raise UnsupportedError(
                f"'{op.name}' of what is not 0 where nothing is stored, or with no constant"
            )
        factor = op.b
        if stored.columns is not None:
            whole = np.zeros((self.columns, matrix.shape[1]), matrix.dtype)
            whole[stored.columns] = matrix
            factor = self._constant(op, whole)
        steps, beside = self._steps(op, stored, 0.0)
        made = CsrMatmulOp.make([*self.parts, factor, *beside], {"steps": steps})
        self._replace(op, made)

    def _reduce(self, op: ReduceOp) -> None:
        stored, kind = self.known[op.x], op.kind.data
        absent = stored.absent.astype(np.float64)
        initial = float(absent[0])
        bound = {"sum": 0.0, "max": stored.low, "min": stored.high}.get(kind)
        if ints(op.axes) != [1] or bound is None or (absent != initial).any() or initial != bound:
            raise UnsupportedError(f"'{op.name}' {kind} of what is not stored")
        steps, beside = self._steps(op, stored, initial)
        if kind == "max":
            # scikit-learn adds up what is stored twice before it looks for the largest.
            self.once = True
            if not LINEAR.issuperset(text.data.partition(" ")[0] for text in steps):
                raise UnsupportedError(f"'{op.name}' max of what is no multiple of what is stored")
        props = {"steps": steps, "kind": op.kind, "initial": FloatAttr(initial, f64)}
        made = CsrReduceOp.make([*self.parts, *beside], props)
        if op.keepdims.value.data:
            return self._replace(op, made)
        flat = ReshapeOp.make(made.results, {"shape": int_array([DYNAMIC])})
        made.location = op.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        self._replace(op, flat)

    def _replace(self, op: GraphOp, made: GraphOp) -> None:
        """Put `made` in the place of an op, which goes later."""
        made.location = op.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        made.results[0].name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(made.results[0])
        applied(op, NAME, "of what is stored")

    def _steps(
        self, op: Operation, stored: Stored, neutral: float
    ) -> tuple[ArrayAttr[StringAttr], list[SSAValue]]:
        """The steps of a value, and the operands that they read; what is not picked is `neutral`."""
        node = stored.node
        if stored.columns is not None:
            mask = np.zeros(self.columns, bool)
            mask[stored.columns] = True
            other = np.full(1, neutral, numpy_dtype(stored.element))
            values = (self._constant(op, mask), node, self._constant(op, other))
            node = Node("where", values)
        texts: list[str] = []
        beside: list[SSAValue] = []
        _write(node, {}, texts, beside)
        return ArrayAttr([StringAttr(text) for text in texts]), beside


def _write(node: Node, names: dict[Node, str], texts: list[str], beside: list[SSAValue]) -> str:
    """The name of a node's value, once what it is made of is written."""
    if not node.step:
        return "x"
    if node in names:
        return names[node]
    values: list[str] = []
    for value in node.values:
        if isinstance(value, Node):
            values.append(_write(value, names, texts, beside))
            continue
        if value not in beside:
            beside.append(value)
        values.append(f"a{beside.index(value)}")
    texts.append(" ".join((node.step, *values)))
    names[node] = f"s{len(texts) - 1}"
    return names[node]
