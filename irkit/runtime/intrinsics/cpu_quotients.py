"""Quotients by a known divisor: two fused operations where loops are vectors, a division elsewhere.

A vector is divided in twice as many cycles as it takes to multiply by a reciprocal, to correct that and to
see whether it was right; one number in fewer. LLVM knows first when its loops are vectors, so the function
of one number names those of vectors (the vector function ABI), and is itself a division (`engine.py` defines
it once loops are vectors).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_seldom import PREFIX

_I1 = ir.IntType(1)
_LANES: Final = {"float": (4, 8, 16), "double": (2, 4, 8)}
_NAME: Final = f"{PREFIX}quotient."

_WORDS: Final = {"float": "i32", "double": "i64"}
DEFINITIONS: Final = "\n".join(
    f"""define linkonce_odr {kind} @"{_NAME}{kind}"(
    {kind} %x, {word} %by, {word}, {word}, {word}) alwaysinline {{
  %y = bitcast {word} %by to {kind}
  %q = fdiv {kind} %x, %y
  ret {kind} %q
}}"""
    for kind, word in _WORDS.items()
)
"""LLVM IR of the functions of one number."""


@intrinsic
def quotient(typingctx: Any, x: Any, y: Any, high: Any, low: Any, least: Any) -> Any:
    """x / y with its bits, `y` being a constant whose reciprocal is `high` + `low` (`reciprocals.py`): of
    float32 or of float64, which all are."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not llvm.get_host_cpu_features().get("fma", True):
            return builder.fdiv(arguments[0], arguments[1])
        function = _of_one(builder.module, arguments[0].type)
        x, *same = arguments
        return builder.call(
            function, [x, *(builder.bitcast(v, function.args[1].type) for v in same)]
        )

    return x(x, x, x, x, x), codegen


def _of_one(module: ir.Module, kind: Any) -> Any:
    name = f"{_NAME}{kind}"
    found = module.globals.get(name)
    if found is not None:
        return found
    # LLVM asks only of integers whether they are the same for all elements.
    word = ir.IntType(32 if isinstance(kind, ir.FloatType) else 64)
    made = ir.Function(module, ir.FunctionType(kind, [kind, *[word] * 4]), name)
    for attribute in ("nounwind", "readnone"):
        made.attributes.add(attribute)
    lanes = _LANES[str(kind)]
    variants = ",".join(f"_ZGV_LLVM_N{n}vuuuu_{name}({name}.{n})" for n in lanes)
    # llvmlite knows attributes of one word.
    set.add(made.attributes, f'"vector-function-abi-variant"="{variants}"')
    for n in lanes:
        _of_vector(module, made, kind, n)
    return made


def _of_vector(module: ir.Module, of_one: Any, kind: Any, lanes: int) -> None:
    """x * high + x * low, or x / y where that may have lost something: what is neither 0 nor large enough."""
    vector = ir.VectorType(kind, lanes)
    same = [argument.type for argument in of_one.args[1:]]
    made = ir.Function(module, ir.FunctionType(vector, [vector, *same]), f"{of_one.name}.{lanes}")
    # Nothing calls it until loops are vectors.
    made.linkage = "weak_odr"
    for attribute in ("alwaysinline", "nounwind"):
        made.attributes.add(attribute)
    entry, unsure, end = (made.append_basic_block(n) for n in ("entry", "unsure", "end"))
    builder = ir.IRBuilder(entry)
    x = made.args[0]
    y, high, low, least = (
        _spread(builder, builder.bitcast(argument, kind), lanes) for argument in made.args[1:]
    )
    suffix = f"v{lanes}{'f32' if isinstance(kind, ir.FloatType) else 'f64'}"
    fused = _call(builder, f"llvm.fma.{suffix}", [x, high, builder.fmul(x, low)], vector)
    size = _call(builder, f"llvm.fabs.{suffix}", [fused], vector)
    # No number is neither.
    small = builder.fcmp_unordered("<", size, least)
    doubtful = builder.and_(
        small, builder.fcmp_unordered("!=", x, ir.Constant(vector, [0.0] * lanes))
    )
    some = _call(builder, f"llvm.vector.reduce.or.v{lanes}i1", [doubtful], _I1)
    builder.cbranch(some, unsure, end).set_weights([1, 4000])
    builder.position_at_end(unsure)
    divided = builder.fdiv(x, y)
    builder.branch(end)
    builder.position_at_end(end)
    result = builder.phi(vector)
    result.add_incoming(fused, entry)
    result.add_incoming(divided, unsure)
    builder.ret(result)


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    vector = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def _call(builder: Any, name: str, arguments: list[Any], result: Any) -> Any:
    kind = ir.FunctionType(result, [a.type for a in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)
