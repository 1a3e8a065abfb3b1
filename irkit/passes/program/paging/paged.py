"""Programs with calls of regions, those that are too large in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from irkit.dialects.functions import function_named
from irkit.dialects.program.check import function_called, result_names, written_arguments
from irkit.dialects.program.spaces import CPU, DEVICE, device_of_call, on_device
from irkit.dialects.program.views import array_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.passes.program.form_regions import outline_whole
from irkit.passes.program.functionalise import functionalised
from irkit.passes.program.paging.budget import Budget, bytes_of
from irkit.passes.program.paging.calls import PagedCall, PagedSweep, unread
from irkit.passes.program.paging.emission import erase_unused
from irkit.passes.program.splitting.bands import Unsplittable
from irkit.passes.program.splitting.demands import line_of
from irkit.passes.program.splitting.plan import split
from irkit.weights import WeightStore

SHARE = 8
"""An argument of at most one in so many of the bytes allowed may be on the device as a whole."""


def page_module(
    module: ModuleOp, weights: WeightStore, limit: int, buffers: int, values: bool = False
) -> list[PagedSweep]:
    """Pass `page`; what became of each sweep. Raises UnsupportedError."""
    main = function_named(module, "main")
    if main is None:
        raise InvalidModelError("the module has no function '@main'")
    outline_whole(main)
    names = result_names(main)
    shadows: dict[SSAValue, SSAValue] = {}
    found: list[PagedSweep] = []
    for call in [op for op in main.walk() if isinstance(op, CallOp)]:
        region = function_called(call)
        if region is None or not _is_paged(call, limit):
            continue
        given: set[SSAValue] = {*main.body.block.args} if values else set()
        made, sweeps = _page(module, main, call, region, weights, limit, buffers, given)
        shadows.update(made)
        found += sweeps
    if values and found:
        _return(main, shadows, names)
    return found


def _return(main: FuncOp, shadows: Mapping[SSAValue, SSAValue], names: Sequence[str]) -> None:
    """Return, after its results, what arguments hold in the end: it stands in arrays of the program."""
    left = written_arguments(main)
    if left:
        raise UnsupportedError(
            f"values: argument {left[0]} is written by what is not computed in chunks"
        )
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    made = [shadows[a] for a in main.body.block.args if a in shadows]
    Rewriter.replace_op(last, ReturnOp(*last.operands, *made))
    main.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n in names])
    types = main.function_type
    outputs = [*types.outputs, *(v.type for v in made)]
    main.function_type = FunctionType.from_lists(list(types.inputs), outputs)


def _is_paged(call: CallOp, limit: int) -> bool:
    """Whether a call is one of the device, with arrays of more than `limit` bytes."""
    if any(map(on_device, call.operands)):
        return False
    if DEVICE in call.attributes and device_of_call(call) == CPU:
        return False
    seen = [b for b in call.operands if not unread(call, b)]
    return sum(bytes_of(array_type(b)) for b in seen) > limit


def _page(
    module: ModuleOp,
    main: FuncOp,
    call: CallOp,
    region: FuncOp,
    weights: WeightStore,
    limit: int,
    buffers: int,
    given: set[SSAValue],
) -> tuple[dict[SSAValue, SSAValue], list[PagedSweep]]:
    """Write a call in chunks. `given` are buffers that stay as they are; what they would hold is in others,
    which are returned."""
    name = region.sym_name.data
    function = functionalised(region, weights)
    written = written_arguments(region)
    live = [n for n, a in enumerate(written) if not unread(call, call.operands[a])]
    small = [n for n, b in enumerate(call.operands) if bytes_of(array_type(b)) * SHARE <= limit]
    try:
        plan = split(function, live, small, dict(enumerate(written)))
        budgets = [Budget(plan, sweep, weights) for sweep in plan.sweeps]
        share = limit // max(len(budgets), 1)
        sizes = [(b, b.size(share, buffers)) for b in budgets]
    except Unsplittable as reason:
        lines = [line for op in region.walk() if (line := line_of(op))]
        where = f" ({lines[-1]})" if lines else ""
        raise UnsupportedError(
            f"region @{name}{where} has arrays of more than {limit} bytes, and is not computed in chunks: "
            f"{reason}"
        ) from None
    made = PagedCall(module, main, call, plan, weights, buffers)
    homes = {n: call.operands[written[n]] for n in live}
    found = made.write(sizes, homes, given)
    shadows = made.finish(given)
    Rewriter.erase_op(call)
    if not any(isinstance(op, CallOp) and function_called(op) is region for op in module.walk()):
        Rewriter.erase_op(region)
    erase_unused(main, (memref.AllocOp, arith.ConstantOp, memref.ReinterpretCastOp))
    return shadows, found
