"""A number as it is, of whose origin LLVM knows nothing until its loops are vectors.

It is a function that LLVM does not see into, and that names those of vectors (the vector function ABI);
`engine.py` defines and inlines all of them in the end (`irkit/rkernels/binding/zeros.py` says what for).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_seldom import PREFIX

_NAME: Final = f"{PREFIX}as_it_is."
_LANES: Final = (2, 4, 8, 16, 32)
DEFINITIONS: Final = "\n".join(
    f"""define linkonce_odr {kind} @"{_NAME}{kind}"({kind} %x) alwaysinline {{
  ret {kind} %x
}}"""
    for kind in ("float", "double")
)
"""LLVM IR of the functions of one number."""


@intrinsic
def as_it_is(typingctx: Any, x: Any) -> Any:
    """x, a float32 or a float64, which LLVM takes for no conversion of another number."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.call(_of_one(builder.module, arguments[0].type), arguments)

    return x(x), codegen


def _of_one(module: ir.Module, kind: Any) -> Any:
    name = f"{_NAME}{kind}"
    found = module.globals.get(name)
    if found is not None:
        return found
    made = ir.Function(module, ir.FunctionType(kind, [kind]), name)
    for attribute in ("nounwind", "readnone"):
        made.attributes.add(attribute)
    variants = ",".join(f"_ZGV_LLVM_N{n}v_{name}({name}.{n})" for n in _LANES)
    # llvmlite knows attributes of one word.
    set.add(made.attributes, f'"vector-function-abi-variant"="{variants}"')
    for n in _LANES:
        vector = ir.VectorType(kind, n)
        of_vector = ir.Function(module, ir.FunctionType(vector, [vector]), f"{name}.{n}")
        # Nothing calls it until loops are vectors.
        of_vector.linkage = "weak_odr"
        for attribute in ("alwaysinline", "nounwind"):
            of_vector.attributes.add(attribute)
        ir.IRBuilder(of_vector.append_basic_block("entry")).ret(of_vector.args[0])
    return made
