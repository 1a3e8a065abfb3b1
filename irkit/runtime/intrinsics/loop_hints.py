"""What a loop of an rKernel asks of LLVM: four vectors at a time, vectors to its end, or no vectors.

LLVM interleaves vectors of small bodies alone. A polynomial is a large body to it, taken one vector at a
time: each of its constants is then read from memory anew for every vector, and that, not arithmetic, is what
it waits for. And it unrolls short loops of known length, or takes what fills no vector element by element:
of rows of a few columns that is all there is, so their last vector is one of fewer lanes. And it gathers
what lies anywhere in vectors, element by element all the same, where plain loads would take half the time.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions
from numba import types
from numba.extending import intrinsic

_FOUR = "irkit: four vectors at a time"
_MASKED = "irkit: the last vector has fewer lanes"
_SINGLE = "irkit: element by element"
_HINTS: dict[str, tuple[tuple[str, *tuple[ir.Constant, ...]], ...]] = {
    _FOUR: (("llvm.loop.interleave.count", ir.Constant(ir.IntType(32), 4)),),
    _MASKED: (
        ("llvm.loop.vectorize.predicate.enable", ir.Constant(ir.IntType(1), 1)),
        ("llvm.loop.unroll.disable",),
    ),
    _SINGLE: (
        ("llvm.loop.vectorize.enable", ir.Constant(ir.IntType(1), 0)),
        ("llvm.loop.unroll.full",),
    ),
}
"""What is said in a loop's body, and the properties that the loop then has."""


@intrinsic
def four_vectors_at_a_time(typingctx: Any) -> Any:
    """Said in the body of a loop: where LLVM computes it in vectors, of four at a time. No instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.comment(_FOUR)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def last_vector_of_fewer_lanes(typingctx: Any) -> Any:
    """Said in the body of a loop: where LLVM computes it in vectors, what fills none too. No instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.comment(_MASKED)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def element_by_element(typingctx: Any) -> Any:
    """Said in the body of a loop: LLVM unrolls it whole, and uses no vectors. No instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.comment(_SINGLE)
        return context.get_dummy_value()

    return types.void(), codegen


def hint_loops(module: ir.Module) -> None:
    """Tell LLVM, by properties of loops, what is said in the body of each innermost one."""
    for function in module.functions:
        marked = [(block, mark) for block in function.blocks if (mark := _mark_of(block))]
        if marked:
            loops = sorted(_loops(function), key=lambda loop: len(loop[1]))
            for block, mark in marked:
                latch = next((latch for latch, body in loops if block in body), None)
                if latch is not None:
                    latch.terminator.set_metadata("llvm.loop", _hinted(module, mark))


def _mark_of(block: Any) -> str:
    """What is said in a block; nothing where that is no hint."""
    comments = (i.text for i in block.instructions if isinstance(i, instructions.Comment))
    return next((text for text in comments if text in _HINTS), "")


def _hinted(module: ir.Module, mark: str) -> Any:
    """A loop's properties are a node whose first operand is itself."""
    properties = [module.add_metadata(list(p)) for p in _HINTS[mark]]
    node = ir.MDValue(module, properties, name=str(len(module.metadata)))
    node.operands = (node, *properties)
    return node


def _successors(block: Any) -> list[Any]:
    return [o for o in block.terminator.operands if isinstance(o, ir.Block)]


def _loops(function: Any) -> Iterator[tuple[Any, set[Any]]]:
    """The last block and all blocks of each loop: what reaches a jump back without passing its target.

    Compiled Python has no jumps into loops, so a jump to a block that is still being visited, depth first,
    goes back to the head of a loop.
    """
    before: dict[Any, list[Any]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for following in _successors(block):
            before[following].append(block)
    for latch, head in _jumps_back(function.entry_basic_block):
        body, left = {head, latch}, [latch] if latch is not head else []
        while left:
            found = [b for b in before[left.pop()] if b not in body]
            body.update(found)
            left += found
        yield latch, body


def _jumps_back(entry: Any) -> Iterator[tuple[Any, Any]]:
    seen, path = {entry}, {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, left = stack[-1]
        following = next(left, None)
        if following is None:
            stack.pop()
            path.remove(block)
        elif following in path:
            yield block, following
        elif following not in seen:
            seen.add(following)
            path.add(following)
            stack.append((following, iter(_successors(following))))
