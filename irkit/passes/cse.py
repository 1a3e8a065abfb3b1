"""`cse`: equal ops on equal operands are one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryEffectKind,
    is_side_effect_free,
    only_has_effect,
)
from xdsl.transforms.common_subexpression_elimination import has_other_side_effecting_op_in_between
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from irkit.passes.signatures import signature


@dataclass(frozen=True)
class CommonSubexpressionElimination(ModulePass):
    """Replace ops by equal ones before them, in their block or around it, and erase what is dead.

    As xDSL's pass of this name, which takes ops for equal whose regions differ in types alone. Ops are equal
    whose operands, attributes, properties and types of results are, and whose regions do the same with values
    of the same types. What only reads memory is replaced where nothing in between may write. Exact.

    ```mlir
    %0 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
    %1 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.add %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.regions:
            _Scope().region(region)


@dataclass
class _Scope:
    """Ops that dominate what is looked at, by what they compute."""

    known: dict[Hashable, Operation] = field(default_factory=dict[Hashable, Operation])

    def region(self, region: Region) -> None:
        """Replace what stands in a region; what it has is known in it alone."""
        if len(region.blocks) != 1:
            return
        before = len(self.known)
        self._block(region.block)
        while len(self.known) > before:
            self.known.popitem()

    def _block(self, block: Block) -> None:
        for op in list(block.ops):
            isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=True)
            inner = _Scope() if isolated else self
            for region in op.regions:
                inner.region(region)
            self._op(op)

    def _op(self, op: Operation) -> None:
        if op.has_trait(IsTerminator):
            return
        if is_trivially_dead(op):
            Rewriter.erase_op(op)
            return
        if any(len(region.blocks) > 1 for region in op.regions):
            return
        reads = not is_side_effect_free(op)
        if reads and not only_has_effect(op, MemoryEffectKind.READ):
            return
        # Of a read another block is not asked: what happened before it is not known there.
        key = (signature(op), op.parent_block() if reads else None)
        known = self.known.setdefault(key, op)
        if reads and has_other_side_effecting_op_in_between(known, op):
            self.known[key] = op
        elif known is not op:
            Rewriter.replace_op(op, [], known.results)
