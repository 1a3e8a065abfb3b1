"""The entry point of a CPU module that binds a call's arrays and walks its records, as text.

Compiling one function takes longer than in proportion to its arguments: of a program of many arrays, as a
training step of a deep network is, they are bound by groups. One binder serves all arrays of one rank
whose elements are as wide, a group at a time.
"""

from __future__ import annotations

import numpy as np

from irkit.schedule.tables import FIRST_INPUT, Port, Program

MOST_ARRAYS = 64
"""That one entry point takes by itself; of more, binders take `GROUP` each."""
GROUP = 16

# What an entry point only takes the address of: 16-bit floats are bits to it.
_ENTRY_TYPES = {"bool": "boolean", "float16": "uint16", "bfloat16": "uint16"}
_HEAD = """types.int64[:, ::1], types.int64[::1], types.int64[::1], types.int64[::1],
        types.int64, types.int64,"""
_OPTIONS = 'nogil=True, cache=True, error_model="numpy"'
_WALK = "return run(serial, 0, serial.shape[0], bases, counters, 1, rows, rows_padded, address)"


def entry(program: Program) -> str:
    """`call(serial, bases, counters, address, rows, rows_padded, x..., y...)`: straight through. Of more than
    `MOST_ARRAYS` arrays `call` takes none, and `BINDERS` has pairs: what binds arrays of one kind, a group of
    them at a time, and the numbers of all of that kind."""
    arrays = [
        _array_type(port, number < len(program.inputs))
        for number, port in enumerate((*program.inputs, *program.outputs))
    ]
    if len(arrays) > MOST_ARRAYS:
        ports = (*program.inputs, *program.outputs)
        return f"{_binders([_address_type(port) for port in ports])}\n\n{_call([])}"
    return _call(arrays)


def _call(arrays: list[str]) -> str:
    names = [f"a{i}" for i in range(len(arrays))]
    kinds = f"\n        {', '.join(arrays)}," if arrays else ""
    binds = "".join(
        f"    bases[{FIRST_INPUT + i}] = {n}.ctypes.data\n" for i, n in enumerate(names)
    )
    return f'''@njit(
    types.int64(
        {_HEAD}{kinds}
    ),
    {_OPTIONS},
)
def call(serial, bases, counters, address, rows, rows_padded, {", ".join(names)}):
    """Bind the arrays and run every rTask on this thread, in list order."""
{binds}    {_WALK}'''


def _binders(arrays: list[str]) -> str:
    of_kind: dict[str, list[int]] = {}
    for number, array in enumerate(arrays):
        of_kind.setdefault(array, []).append(number)
    texts = [_binder(n, array) for n, array in enumerate(of_kind)]
    pairs = "".join(
        f"    (bind_{n}, {tuple(found)}),\n" for n, found in enumerate(of_kind.values())
    )
    return "\n\n".join([*texts, f"BINDERS = (\n{pairs})"])


def _binder(number: int, array: str) -> str:
    names = ", ".join(f"a{i}" for i in range(GROUP))
    binds = "\n".join(
        f"    bases[{FIRST_INPUT} + numbers[{i}]] = a{i}.ctypes.data" for i in range(GROUP)
    )
    return f'''@njit(
    types.void(
        types.int64[::1], types.int64[::1],
        {", ".join([array] * GROUP)},
    ),
    {_OPTIONS},
)
def bind_{number}(bases, numbers, {names}):
    """Bind arrays of one kind."""
{binds}'''


def _array_type(port: Port, readonly: bool) -> str:
    element = _ENTRY_TYPES.get(port.dtype, port.dtype)
    return f'types.Array(types.{element}, {len(port.shape)}, "C", readonly={readonly})'


def _address_type(port: Port) -> str:
    """What stands for a port's type where only its address is taken: arrays are taken apart by their rank and
    the width of an element."""
    width = 16 if port.dtype == "bfloat16" else 8 * np.dtype(port.dtype).itemsize
    return f'types.Array(types.uint{width}, {len(port.shape)}, "C", readonly=True)'
