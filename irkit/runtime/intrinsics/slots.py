"""Numbers that stand in a text as slots, and are put into its IR once Numba is done with it.

`number_slot(n)` is an `int64`, and `real_slot(n)` a `float64`, whose value is not known to Numba: a call of a
function that nobody defines. `filled` puts numbers in the calls' places, in IR that no pass of LLVM has seen.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

SLOT_IMPORT = "from irkit.runtime.intrinsics.slots import number_slot, real_slot"
"""What a text with slots begins with."""
_PREFIX = "irkit_slot_"
# Calls in functions of fast math have its flags.
_CALL = re.compile(rf'\bcall (?:[a-z]+ )*(?:i64|double) @"?{_PREFIX}(\d+)"?\(\)')
_NAME = re.compile(rf"\b{_PREFIX}(\d+)")
_DECLARED = re.compile(rf'^declare (?:i64|double) @"?{_PREFIX}\d+"?\(\).*\n', re.MULTILINE)


@intrinsic
def number_slot(typingctx, number):
    """The value of the slot `number`, a literal: an `int64`."""
    return _slot(number, types.int64, ir.IntType(64))


@intrinsic
def real_slot(typingctx, number):
    """The value of the slot `number`, a literal: a `float64`."""
    return _slot(number, types.float64, ir.DoubleType())


def _slot(number, kind, in_ir):
    if not isinstance(number, types.IntegerLiteral):
        return None
    name = f"{_PREFIX}{number.literal_value}"

    def codegen(context, builder, signature, args):
        function = get_or_insert_function(builder.module, ir.FunctionType(in_ir, []), name)
        return builder.call(function, [])

    return kind(number), codegen


def numbered(text: str, numbers: Mapping[int, int]) -> str:
    """LLVM IR whose slots go by `numbers` of theirs."""
    return _NAME.sub(lambda found: f"{_PREFIX}{numbers[int(found.group(1))]}", text)


def filled(text: str, values: Sequence[int | float]) -> str:
    """LLVM IR with `values[n]` where it calls for slot n."""
    text = _CALL.sub(lambda found: _constant(values[int(found.group(1))]), text)
    return _DECLARED.sub("", text)


def _constant(value: int | float) -> str:
    """An instruction that gives a number, of a float all bits."""
    if isinstance(value, float):
        return f"bitcast i64 {struct.unpack('<q', struct.pack('<d', value))[0]} to double"
    return f"add i64 0, {value}"
