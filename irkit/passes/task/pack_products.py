"""`pack-products`: terms of products laid out for tensor cores, once and before, where that is faster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    bf16,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.bfloat16 import BFLOAT16
from irkit.context import weights_of
from irkit.dialects import te
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.loop import schedule_on
from irkit.dialects.packed_terms import FORMATS, packed
from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_body import GATES
from irkit.dialects.task import LaunchOp, ROperatorOp, YieldOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.gpu import device_of
from irkit.passes.task.outlining import Outliner
from irkit.passes.task.partition_rtasks import Partition
from irkit.processors import usable_cores
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.rkernels.packed_operands import packings_of
from irkit.rkernels.rkernel import RKernel
from irkit.schedule.model import VDevice
from irkit.weights import Array, WeightStore, content_digest

RULE = "PackProduct"
SMALLEST = 1 << 22
"""Multiply-adds below which products are not looked at: they take less than the launch of a packing."""
LAUNCH_NS = 1500.0
"""What one more launch takes at least, in ns."""
AT_ONCE = 8
"""Constants that are packed at once: NumPy holds no lock. Each takes several times its memory meanwhile."""


@dataclass(frozen=True)
class Packing:
    """How one operand of a product of matrices would be packed: `number` is that of the rOperator's operand,
    `position` that of the product's."""

    position: int
    number: int
    by_k: bool
    depth: int
    terms: str
    """Their name in FORMATS."""

    def props(self) -> dict[str, Attribute]:
        """Those of `te.pack`."""
        return {
            "precision": StringAttr(self.terms),
            "terms": IntegerAttr(int(self.by_k), i64),
            "depth": IntegerAttr(self.depth, i64),
        }

    def op(self, value: SSAValue) -> te.PackOp:
        """What packs `value`."""
        return te.PackOp.make([value], self.props())


def packings(op: ROperatorOp) -> dict[str, list[Packing]] | str:
    """How both operands of an rOperator's product would be packed, by the name of their terms, or why they
    cannot be."""
    try:
        root = root_of(op)
    except UnsupportedError as error:
        return str(error)
    if root.family in ("recurrent_cell", GATES):
        return "its sums are those of a cell's units, which no rKernel adds up from packed terms"
    product = as_product(root) if root.chain else None
    if product is None or DYNAMIC in root.parallel:
        return "it is no product of matrices of known sizes"
    if schedule_on(root.op) is not None:
        return "it is to be run by a schedule"
    known = packings_of(product)
    if not known:
        return "it is no product of matrices in memory, or of plain float32"
    names = [n for n in known if FORMATS[n].element != bf16 or BFLOAT16 is not None]
    if not names:
        return "its terms would be bfloat16, which the package ml_dtypes has"
    if any(isinstance(v.owner, te.PrepackedOp) for v in product.op.inputs):
        return "it is of packed terms already"
    return _of_product(product, names)


def _of_product(product: Product, names: list[str]) -> dict[str, list[Packing]] | str:
    depth, by_k = product.extent(product.k), matrix_of_b(product)
    source = product.op.inputs[product.b]
    if by_k is None or not isinstance(source, BlockArgument):
        return "its second operand is no matrix"
    return {
        name: [
            Packing(product.a, product.in_place.index, True, depth, name),
            Packing(product.b, source.index, by_k, depth, name),
        ]
        for name in names
    }


def prepack(op: ROperatorOp, found: list[Packing]) -> None:
    """Give an rOperator's product its packed terms, as operands that come last."""
    block, product = op.body.block, root_of(op).chain[0]
    for packing in found:
        x = product.operands[packing.position]
        (kind,) = te.PackOp.infer([tensor_type(x)], packing.props())
        argument = block.insert_arg(kind, len(block.args))
        named = te.PrepackedOp.make([x, argument], packing.props())
        Rewriter.insert_op(named, InsertPoint.before(product))
        product.operands[packing.position] = named.y
    outputs = op.function_type.outputs.data
    op.function_type = FunctionType.from_lists(block.arg_types, outputs)


_Key = tuple[Block | None, SSAValue, bool, int, str]


def _key(value: SSAValue, packing: Packing, launch: LaunchOp) -> _Key:
    return (launch.parent_block(), value, packing.by_k, packing.depth, packing.terms)


def _terms(given: tuple[Array, Packing]) -> tuple[Array, str]:
    """The packed terms of a matrix, and their digest."""
    array, packing = given
    terms = packed(array, packing.terms, packing.depth, packing.by_k)
    return np.ascontiguousarray(terms), content_digest(terms)


@dataclass
class Packer:
    """Packs what launches read, each value once."""

    outliner: Outliner
    weights: WeightStore
    known: dict[_Key, SSAValue] = field(default_factory=dict[_Key, SSAValue])
    terms: dict[_Key, tuple[Array, str]] = field(default_factory=dict[_Key, tuple[Array, str]])
    """Of constants that nothing reads yet, with their digests."""

    def packed(self, value: SSAValue, packing: Packing, launch: LaunchOp) -> SSAValue:
        """The packed terms of a matrix, made before `launch`."""
        key = _key(value, packing, launch)
        if key not in self.known:
            found = self.terms.pop(key, None)
            if found is None:
                self.known[key] = self._launched(value, packing, launch)
            else:
                terms, digest = found
                made = constant(terms, self.weights, digest=digest)
                Rewriter.insert_op(made, InsertPoint.before(launch))
                self.known[key] = made.result
        return self.known[key]

    def pack_constants(self, wanted: Iterable[tuple[LaunchOp, Packing]]) -> None:
        """Find the terms of what is constant of what launches read, of several matrices at once."""
        arrays = dict[_Key, tuple[Array, Packing]]()
        for launch, packing in wanted:
            value = launch.arguments[packing.number]
            array = constant_array(value, self.weights)
            if array is not None:
                arrays[_key(value, packing, launch)] = array, packing
        arrays = {key: given for key, given in arrays.items() if key not in self.known}
        with ThreadPoolExecutor(min(usable_cores(), AT_ONCE)) as pool:
            self.terms |= zip(arrays, pool.map(_terms, arrays.values()), strict=True)

    def _launched(self, value: SSAValue, packing: Packing, launch: LaunchOp) -> SSAValue:
        op = packing.op(value)
        op.location = launch.location
        Rewriter.insert_op(op, InsertPoint.before(launch))
        # What is outlined gives what is used of it.
        given = list(launch.operands)
        launch.operands = [*given, op.y]
        self.outliner.outline([op])
        result = launch.operands[-1]
        launch.operands = given
        return result


_WAYS: dict[str, Callable[[list[Packing]], list[list[Packing]]]] = {
    "": lambda found: [found, found[:1], found[1:]],
    "first": lambda found: [found[:1]],
    "second": lambda found: [found[1:]],
}
"""Which operands are packed together, by what is asked for."""


def _ways(found: dict[str, list[Packing]], only: str, terms: str) -> list[list[Packing]]:
    """Which operands may be packed, and how."""
    return [way for name, both in found.items() if terms in ("", name) for way in _WAYS[only](both)]


@dataclass(frozen=True)
class PackProducts(ModulePass):
    """Pack the terms of products, so that tensor cores read them as they lie, where `device` can.

    Of a product of matrices both operands are packed, or one alone: constants here, the rest by a launch, one
    for all products that read it. A product is given its packed terms beside its operands (`te.prepacked`),
    from which it is summed where the terms' parts do not suffice. Done where the estimated time of the
    product and of what packs its operands is less than that of the product as it is, in the way that takes
    the least; with `always`, of all products of matrices, both operands. With `only`, no more than the
    `first` or the `second` operand is packed, with `terms` as no other than those. No value changes.

    ```mlir
    %y = task.launch @gemm_0(%x, %w)
    ```
    becomes
    ```mlir
    %p = task.launch @pack_0(%x)
    %y = task.launch @gemm_0(%x, %w, %p, %packed_w)
    ```
    """

    name = "pack-products"
    requires: ClassVar[tuple[str, ...]] = ("task",)
    produces: ClassVar[str] = "task"
    device: str = "cpu"
    always: bool = False
    only: str = ""
    terms: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.only not in _WAYS:
            raise UnsupportedError(f"only={self.only!r}: expected 'first' or 'second'")
        if self.terms not in ("", *FORMATS):
            raise UnsupportedError(f"terms={self.terms!r}: expected one of {', '.join(FORMATS)}")
        device = device_of(self.device)
        if device.kind != "cuda" or not device.architecture.has_wgmma:
            return
        packer, packing_ns = Packer(Outliner(op), weights_of(ctx)), dict[_Packed, float]()
        for roperator in [o for o in op.ops if isinstance(o, ROperatorOp)]:
            launches = [
                o
                for o in op.walk()
                if isinstance(o, LaunchOp) and o.callee.string_value() == roperator.sym_name.data
            ]
            found = packings(roperator)
            if isinstance(found, str):
                missed(roperator, RULE, "{}", found)
                continue
            if self.terms and self.terms not in found:
                missed(roperator, RULE, "its terms can be {} alone", " or ".join(found))
                continue
            ways = _ways(found, self.only, self.terms)
            gains = _Gains(op, roperator, launches, device, packer.weights, packing_ns).of(ways)
            best = 0 if self.always else gains.index(max(gains))
            if gains[best] <= 0 and not self.always:
                missed(roperator, RULE, "an estimated {:.0f} ns more", -gains[best])
                continue
            applied(roperator, RULE, "an estimated {:.0f} ns less", gains[best])
            _rewrite(roperator, ways[best], launches, packer)


def _rewrite(
    op: ROperatorOp, found: list[Packing], launches: list[LaunchOp], packer: Packer
) -> None:
    prepack(op, found)
    packer.pack_constants((launch, p) for launch in launches for p in found)
    for launch in launches:
        more = [packer.packed(launch.arguments[p.number], p, launch) for p in found]
        launch.operands = [*launch.arguments, *more]


_Packed = tuple[Attribute, bool, int, str]
"""A kind of operand, and how it is packed: all that the time of that hangs on."""


@dataclass(frozen=True)
class _Gains:
    """What the launches of an rOperator would take less, in ns, by estimate, were operands packed.

    `packing_ns`: what packing takes alone, as far as it is known: layers of a network have equal operands.
    """

    module: ModuleOp
    op: ROperatorOp
    launches: list[LaunchOp]
    device: VDevice
    weights: WeightStore
    packing_ns: dict[_Packed, float]

    def of(self, ways: list[list[Packing]]) -> list[float]:
        """Of each way to pack them."""
        if _multiply_adds(self.op) < SMALLEST:
            return [-math.inf] * len(ways)
        partition = Partition(self.module, self.device)
        plain = partition.fastest_ns(self.op.clone())
        return [
            len(self.launches) * (plain - self._with_terms(partition, way))
            - sum(self._packing_ns(partition, packing) for packing in way)
            for way in ways
        ]

    def _with_terms(self, partition: Partition, way: list[Packing]) -> float:
        """What a launch would take with these terms: by an rKernel that reads them, or none."""
        op = self.op.clone()
        prepack(op, way)
        try:
            return partition.fastest_ns(op, _reads_packed)
        except UnsupportedError:
            return math.inf

    def _packing_ns(self, partition: Partition, packing: Packing) -> float:
        """What packing an operand takes where it is no constant."""
        values = dict.fromkeys(launch.arguments[packing.number] for launch in self.launches)
        made = [v for v in values if constant_array(v, self.weights) is None]
        return sum(LAUNCH_NS + self._alone_ns(partition, v, packing) for v in made)

    def _alone_ns(self, partition: Partition, value: SSAValue, packing: Packing) -> float:
        kind = value.type, packing.by_k, packing.depth, packing.terms
        if kind not in self.packing_ns:
            found = partition.fastest_ns(_packing_roperator(value, packing))
            self.packing_ns[kind] = found
        return self.packing_ns[kind]


def _reads_packed(rkernel: RKernel) -> bool:
    return any(name.startswith("PACKED_") for name in rkernel.vectors)


def _multiply_adds(op: ROperatorOp) -> int:
    root = root_of(op)
    return math.prod((*root.parallel, *root.reduction))


def _packing_roperator(value: SSAValue, packing: Packing) -> ROperatorOp:
    """The rOperator that would pack a value."""
    block = Block(arg_types=[value.type])
    op = packing.op(block.args[0])
    block.add_ops([op, YieldOp.create(operands=[op.y])])
    return ROperatorOp("candidate", Region(block))
