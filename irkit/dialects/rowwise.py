"""`te.rowwise` and `te.row_reduce`: elements of rows that hang on sums along these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    StringAttr,
    TensorType,
    f32,
    f64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AnyOf,
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.linalg_generic import SCALARS, is_projection
from irkit.dialects.types import DYNAMIC, Tensor, tensor, tensor_type

KINDS: Final = ("add", "max", "min")

CHEAP: Final = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.CmpfOp, arith.CmpiOp),
    *(arith.SelectOp, arith.MaximumfOp, arith.MinimumfOp, arith.ExtFOp, arith.TruncFOp),
    *(arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ConstantOp, math.AbsFOp),
    *(arith.UIToFPOp, arith.SIToFPOp, arith.ExtUIOp, arith.ExtSIOp),
)
"""What takes no longer than it takes to keep it."""


@irdl_op_definition
class RowwiseOp(IRDLOperation):
    """Each element of the result from the elements that its place reads, and from what is summed along its row.

    A row is what lies along the last dimension of an operand that is read place by place, whose extent is
    known. `indexing_maps` say, as on a `linalg.generic`, which element of each operand a place reads; each is a
    projection. The result has an element for each place, or, if it has a dimension less, one for each row: the
    body then yields what is alike in all of it. The body is straight code of scalars with `te.row_reduce`
    between, which is the same number for all elements of a row.

    ```mlir
    func.func @shares(%x: tensor<?x10xf32>, %scale: tensor<10xf32>) -> tensor<?x10xf32> {
      %y = te.rowwise %x, %scale [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] {
      ^bb0(%0: f32, %1: f32):
        %2 = math.exp %0 : f32
        %3 = te.row_reduce %2 {kind = "add"} : f32
        %4 = arith.divf %2, %3 : f32
        %5 = arith.mulf %4, %1 : f32
        te.yield %5 : f32
      } : (tensor<?x10xf32>, tensor<10xf32>) -> tensor<?x10xf32>
      func.return %y : tensor<?x10xf32>
    }
    ```
    """

    name = "te.rowwise"
    inputs = var_operand_def(TensorType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    body = region_def("single_block")
    y = result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "$inputs $indexing_maps $body attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        body: Region,
        shape: Sequence[int],
    ) -> None:
        end = body.block.last_op
        assert end is not None
        super().__init__(
            operands=[inputs],
            properties={"indexing_maps": ArrayAttr([AffineMapAttr(m) for m in maps])},
            regions=[body],
            result_types=[tensor(end.operands[0].type, shape)],
        )

    @property
    def maps(self) -> list[AffineMap]:
        """Of each operand, which of its elements a place of the result reads."""
        return [m.data for m in self.indexing_maps]

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of all rows. Raises VerifyException where no operand is read place by place."""
        for value, amap in zip(self.inputs, self.maps, strict=False):
            shape = tensor_type(value).get_shape()
            if amap == AffineMap.identity(len(shape)):
                return shape
        raise self._fail("an operand that is read place by place", "none")

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.rows[-1]

    @property
    def sums_up(self) -> bool:
        """Whether the result has one element for each row."""
        return len(tensor_type(self.y).get_shape()) < len(self.rows)

    def verify_(self) -> None:
        shape = self.rows
        if not shape or shape[-1] in (0, DYNAMIC):
            raise self._fail("rows of known length, 1 or more", f"a shape {list(shape)}")
        if len(self.maps) != len(self.inputs):
            raise self._fail(f"{len(self.inputs)} maps", len(self.maps))
        for value, amap in zip(self.inputs, self.maps, strict=True):
            self._check_read(tensor_type(value), amap, shape)
        if tensor_type(self.y).get_shape() not in (shape, shape[:-1]):
            raise self._fail(f"a result of shape {list(shape)} or {list(shape[:-1])}", self.y.type)
        self._check_body()

    def _check_body(self) -> None:
        given = [tensor_type(v).element_type for v in self.inputs]
        taken = [a.type for a in self.body.block.args]
        if given != taken:
            raise self._fail(f"a body of {_listed(given)}", _listed(taken))
        for op in self.body.block.ops:
            if type(op) not in SCALARS and not isinstance(op, RowReduceOp | YieldOp):
                raise self._fail("a body of scalars and sums along rows", f"'{op.name}'")
        end = self.body.block.last_op
        made = [v.type for v in end.operands] if isinstance(end, YieldOp) else []
        if made != [tensor_type(self.y).element_type]:
            raise self._fail(
                f"a body that yields {tensor_type(self.y).element_type}", _listed(made)
            )
        sweeps = Sweeps(self)
        if self.sums_up and not sweeps.is_same(sweeps.terms[-1][0], sweeps.same):
            raise self._fail("a body that yields what is alike in a row", "what is not")

    def _check_read(self, t: Tensor, amap: AffineMap, shape: Sequence[int]) -> None:
        own = t.get_shape()
        if amap.num_dims != len(shape) or len(amap.results) != len(own) or not is_projection(amap):
            raise self._fail(f"a projection of {len(shape)} loops to {t}", amap)
        for expr, size in zip(amap.results, own, strict=True):
            there = shape[expr.position] if isinstance(expr, AffineDimExpr) else 1
            if size != there:
                raise self._fail(f"an operand of rows {list(shape)} that {amap} reads", t)

    def _fail(self, expected: str, actual: object) -> VerifyException:
        text = f"'{self.name}' expects {expected}, got {actual}"
        return VerifyException(text.replace(str(DYNAMIC), "?"))


@irdl_op_definition
class RowReduceOp(IRDLOperation):
    """In the body of a `te.rowwise`: the sum (`add`), or the largest or smallest, of all elements of a row.

    A NaN among them is the result.

    ```mlir
    func.func @largest(%x: tensor<?x10xf32>) -> tensor<?xf32> {
      %y = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
      ^bb0(%0: f32):
        %1 = te.row_reduce %0 {kind = "max"} : f32
        te.yield %1 : f32
      } : (tensor<?x10xf32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }
    ```
    """

    name = "te.row_reduce"
    T: ClassVar = VarConstraint("T", AnyOf((EqAttrConstraint(f32), EqAttrConstraint(f64))))
    x = operand_def(T)
    kind = prop_def(StringAttr)
    y = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), HasParent(RowwiseOp))
    assembly_format = "$x attr-dict `:` type($y)"

    def __init__(self, x: SSAValue, kind: str) -> None:
        properties = {"kind": StringAttr(kind)}
        super().__init__(operands=[x], properties=properties, result_types=[x.type])

    def verify_(self) -> None:
        if self.kind.data not in KINDS:
            raise VerifyException(
                f"'{self.name}' expects one of {', '.join(KINDS)}, got '{self.kind.data}'"
            )


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of the body of a `te.rowwise`: the element of its result.

    ```mlir
    func.func @twice(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
      %y = te.rowwise %x [affine_map<(d0, d1) -> (d0, d1)>] {
      ^bb0(%0: f32):
        %1 = arith.addf %0, %0 : f32
        te.yield %1 : f32
      } : (tensor<?x10xf32>) -> tensor<?x10xf32>
      func.return %y : tensor<?x10xf32>
    }
    ```
    """

    name = "te.yield"
    x = operand_def()
    traits = traits_def(IsTerminator(), HasParent(RowwiseOp))
    assembly_format = "$x attr-dict `:` type($x)"

    def __init__(self, x: SSAValue) -> None:
        super().__init__(operands=[x])


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


@dataclass(frozen=True)
class Sweeps:
    """In which order the body of a `te.rowwise` is computed: sweeps over a row, between which sums are known.

    In sweep n the terms of `reductions[n]` are added up; the last one, behind them, stores elements.
    """

    op: RowwiseOp

    @cached_property
    def known(self) -> dict[SSAValue, int]:
        """The first sweep in which a value of the body can be had."""
        found: dict[SSAValue, int] = dict.fromkeys(self.op.body.block.args, 0)
        for op in self.op.body.block.ops:
            first = max((found.get(v, 0) for v in op.operands), default=0)
            found.update(dict.fromkeys(op.results, first + isinstance(op, RowReduceOp)))
        return found

    @cached_property
    def reductions(self) -> list[list[RowReduceOp]]:
        """By sweep, those whose terms it has."""
        found: dict[int, list[RowReduceOp]] = {}
        for op in self.op.body.block.ops:
            if isinstance(op, RowReduceOp):
                found.setdefault(self.known[op.y] - 1, []).append(op)
        return [found[n] for n in range(len(found))]

    @cached_property
    def same(self) -> set[SSAValue]:
        """Values of the body that are alike in all elements of a row."""
        last = len(self.op.rows) - 1
        arguments = zip(self.op.body.block.args, self.op.maps, strict=True)
        found: set[SSAValue] = {a for a, m in arguments if last not in m.used_dims()}
        for op in self.op.body.block.ops:
            if isinstance(op, RowReduceOp) or all(self.is_same(v, found) for v in op.operands):
                found.update(op.results)
        return found

    @staticmethod
    def is_same(value: SSAValue, found: set[SSAValue]) -> bool:
        """Whether a value is among those `found`, or stands outside of the body: a constant."""
        return value in found or (not isinstance(value, BlockArgument) and _outside(value))

    @property
    def terms(self) -> list[list[SSAValue]]:
        """What each sweep needs: terms, and in the end the element of the result."""
        end = self.op.body.block.last_op
        assert end is not None
        return [*([op.x for op in ops] for ops in self.reductions), [end.operands[0]]]

    def needed(self, values: Sequence[SSAValue], held: set[SSAValue]) -> set[SSAValue]:
        """Values of single elements that it takes to have others, down to those `held`, which are known."""
        pending, found = list(values), set[SSAValue]()
        while pending:
            value = pending.pop()
            if value in found or self.is_same(value, self.same):
                continue
            found.add(value)
            if value not in held and isinstance(value.owner, Operation):
                pending.extend(value.owner.operands)
        return found

    def in_order(self, values: set[SSAValue]) -> list[SSAValue]:
        """Values of the body as they stand there."""
        block = self.op.body.block
        every = [*block.args, *(r for inner in block.ops for r in inner.results)]
        return [v for v in every if v in values]


def _outside(value: SSAValue) -> bool:
    op = value.owner
    parent = op.parent_op() if isinstance(op, Operation) else None
    return not isinstance(parent, RowwiseOp)
