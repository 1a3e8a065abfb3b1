"""A Numba intrinsic that reads a packed node of a forest on a CPU."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I64, _WORDS = ir.IntType(64), 4


@intrinsic
def packed_node(typingctx: Any, nodes: Any, index: Any, x: Any) -> Any:
    """(threshold of the type that `x` points to, third word, fourth word) of node `index`.

    They are read one by one, from one line of a cache: what is read in vectors must be taken apart again.
    """
    result = types.Tuple((x.dtype, types.int32, types.int32))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number, like = arguments
        first = builder.mul(builder.sext(number, _I64), ir.Constant(_I64, _WORDS))
        words = [
            builder.gep(pointer, [builder.add(first, ir.Constant(_I64, i))]) for i in (0, 2, 3)
        ]
        words[0] = builder.bitcast(words[0], like.type)
        return context.make_tuple(builder, result, [builder.load(w) for w in words])

    return result(nodes, types.int32, x), codegen
