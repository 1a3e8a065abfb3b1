"""What few elements need, apart from the vectors of a loop: computed only where one of a vector needs it.

LLVM computes both sides of a test for all elements of a vector, and where one of them calls a function there
are no vectors. So the seldom side is a function that names others, which are the same of vectors with a mask
of the elements that want it (the vector function ABI). These ask whether any does, and if not, do nothing.
Once loops are vectors and call them they are inlined (`engine.py`): what is left is a test and a branch.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

PREFIX: Final = "irkit.seldom."
"""How the names of these functions begin."""
_LANES = (2, 4, 8, 16)
_I1, _I32 = ir.IntType(1), ir.IntType(32)


def seldom(function: Callable[..., Any], kind: Any = types.float64) -> Any:
    """An intrinsic of one float, a float64 by default: `function`, which any element may be given, and few
    are."""
    name = PREFIX + function.__name__

    @intrinsic
    def call(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found = builder.module.globals.get(name)
            made = found or _scalar(context, builder.module, name, function, kind)
            return builder.call(made, arguments)

        return kind(kind), codegen

    return call


def _scalar(
    context: Any, module: ir.Module, name: str, function: Callable[..., Any], kind: Any
) -> Any:
    number = context.get_value_type(kind)
    made = ir.Function(module, ir.FunctionType(number, [number]), name)
    made.linkage = "linkonce_odr"
    for attribute in ("noinline", "nounwind", "readnone"):
        made.attributes.add(attribute)
    variants = ",".join(f"_ZGV_LLVM_M{n}v_{name}({name}.{n})" for n in _LANES)
    # llvmlite knows attributes of one word.
    set.add(made.attributes, f'"vector-function-abi-variant"="{variants}"')
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    signature = kind(kind)
    compiled = context.compile_subroutine(builder, function, signature)
    _, result = context.call_internal_no_propagate(
        builder, compiled.fndesc, signature, [made.args[0]]
    )
    builder.ret(result)
    for lanes in _LANES:
        _variant(module, made, lanes)
    return made


def _variant(module: ir.Module, scalar: Any, lanes: int) -> None:
    """The function of vectors: whichever elements want it, it is computed for all."""
    number = scalar.function_type.return_type
    vector, mask = ir.VectorType(number, lanes), ir.VectorType(_I1, lanes)
    made = ir.Function(module, ir.FunctionType(vector, [vector, mask]), f"{scalar.name}.{lanes}")
    # Nothing calls it until loops are vectors.
    made.linkage = "weak_odr"
    made.attributes.add("alwaysinline")
    made.attributes.add("nounwind")
    entry, wanted, end = (made.append_basic_block(n) for n in ("entry", "wanted", "end"))
    builder = ir.IRBuilder(entry)
    x, which = made.args
    kind = ir.FunctionType(_I1, [mask])
    name = f"llvm.vector.reduce.or.v{lanes}i1"
    reduce = module.globals.get(name) or ir.Function(module, kind, name)
    any_wants = builder.call(reduce, [which])
    builder.cbranch(any_wants, wanted, end).set_weights([1, 4000])
    builder.position_at_end(wanted)
    found: Any = x
    for lane in range(lanes):
        element = builder.call(scalar, [builder.extract_element(x, _I32(lane))])
        found = builder.insert_element(found, element, _I32(lane))
    builder.branch(end)
    builder.position_at_end(end)
    result = builder.phi(vector)
    result.add_incoming(x, entry)
    result.add_incoming(found, wanted)
    builder.ret(result)
