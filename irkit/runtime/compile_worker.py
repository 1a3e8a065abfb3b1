"""A process that compiles rKernels for another: `python -m irkit.runtime.compile_worker [STEP]`.

It reads requests from its standard input, answers on its standard output, and ends with the input. Both are
pickles behind their length, of 8 bytes: a request is (step, arguments), an answer (whether it went well, what
came of it or what went wrong).
"""

from __future__ import annotations

import gc
import os
import pickle
import struct
import sys
import warnings
from importlib import import_module
from typing import Any, BinaryIO

from irkit.runtime.fewer_collections import fewer_collections

STEPS = {
    "cpu": ("irkit.runtime.machine_code", "lower"),
    "cpu code": ("irkit.runtime.machine_code", "code_of"),
    "cpu functions": ("irkit.runtime.function_code", "payload"),
    "cuda": ("irkit.runtime.cuda.unit_code", "lower"),
    "cuda entries": ("irkit.runtime.cuda.entry_code", "lower_entries"),
}
"""Step -> the module, and its function that takes the arguments and gives bytes."""
WARM = {
    "cpu": ("irkit.runtime.machine_code", "warm"),
    "cuda": ("irkit.runtime.cuda.warm", "warm"),
}
"""Step -> what imports all that it needs, before anything is asked for."""
_LENGTH = struct.Struct(">Q")


def take_step(step: str, arguments: tuple[Any, ...]) -> bytes:
    """What comes of a step, in this process."""
    module, function = STEPS[step]
    return getattr(import_module(module), function)(*arguments)


def send(stream: BinaryIO, value: object) -> None:
    """Write a value behind its length."""
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """The next value. Raises EOFError at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _answer(request: Any) -> tuple[bool, Any]:
    try:
        return True, take_step(*request)
    except BaseException as error:
        # Whoever asked takes it again, and meets the error itself.
        return False, f"{type(error).__name__}: {error}"


def main() -> None:
    """Answer requests until there are no more."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    # What libraries print must not stand between answers.
    os.dup2(2, 1)
    for step in sys.argv[1:]:
        module, function = WARM[step]
        getattr(import_module(module), function)()
    # What is imported stays.
    gc.freeze()
    with fewer_collections():
        _serve(answers)


def _serve(answers: BinaryIO) -> None:
    while True:
        try:
            request = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(answers, _answer(request))


if __name__ == "__main__":
    main()
