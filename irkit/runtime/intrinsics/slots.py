"""Whole numbers that stand in a text as slots, and are put into its IR once Numba is done with it.

`number_slot(n)` is an `int64` whose value is not known to Numba: a call of a function that nobody defines.
`filled` puts numbers in the calls' places, in IR that no pass of LLVM has seen.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import re
from collections.abc import Sequence

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

SLOT_IMPORT = "from irkit.runtime.intrinsics.slots import number_slot"
"""What a text with slots begins with."""
_PREFIX = "irkit_slot_"
_CALL = re.compile(rf'\bcall i64 @"?{_PREFIX}(\d+)"?\(\)')
_DECLARED = re.compile(rf'^declare i64 @"?{_PREFIX}\d+"?\(\).*\n', re.MULTILINE)


@intrinsic
def number_slot(typingctx, number):
    """The value of the slot `number`, a literal: an `int64`."""
    if not isinstance(number, types.IntegerLiteral):
        return None
    name = f"{_PREFIX}{number.literal_value}"

    def codegen(context, builder, signature, args):
        function = get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(64), []), name)
        return builder.call(function, [])

    return types.int64(number), codegen


def filled(text: str, values: Sequence[int]) -> str:
    """LLVM IR with `values[n]` where it calls for slot n."""
    text = _CALL.sub(lambda found: f"add i64 0, {values[int(found.group(1))]}", text)
    return _DECLARED.sub("", text)
