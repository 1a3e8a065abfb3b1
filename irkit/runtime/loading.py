"""From the text of an emitted CPU module to machine code in this process.

Each rKernel is compiled by itself (`units.py`, `machine_code.py`) and kept on disk (`code_store.py`); equal
ones are one, whatever program they are of. In memory machine code lasts as long as somebody holds a
`LoadedModule` with it: programs of the same text share one, and the last one dropped frees it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irkit.runtime import code_store, machine_code
from irkit.runtime.artifact import Artifact
from irkit.runtime.forms import Form, form_of
from irkit.runtime.function_code import Functions, functions_of, known_functions, made_functions
from irkit.runtime.intrinsics.engine import forget_functions
from irkit.runtime.machine_code import RKernelCode
from irkit.runtime.side_by_side import Request, compile_units
from irkit.runtime.units import Parts, Unit, key_of, parts_of
from irkit.schedule.tables import Program


@dataclass(frozen=True, eq=False)
class _GroupedCall:
    """`call` of a module of many arrays: these are bound by groups of one type."""

    binders: tuple[tuple[Callable[..., None], tuple[tuple[Any, tuple[int, ...]], ...]], ...]
    walk: Callable[..., int]

    def __call__(
        self,
        records: Any,
        bases: Any,
        counters: Any,
        address: Any,
        rows: int,
        padded: int,
        *arrays: Any,
    ) -> None:
        for bind, groups in self.binders:
            for numbers, group in groups:
                bind(bases, numbers, *[arrays[number] for number in group])
        self.walk(records, bases, counters, address, rows, padded)


@dataclass(frozen=True, eq=False)
class LoadedModule:
    """The machine code of an emitted CPU module.

    `rkernels` are the addresses of its rKernels, by number; they hold while this object lives. `run` walks
    a range of records, `call` all of them in order: compiled functions that check none of their arguments.
    """

    program: Program
    rkernels: tuple[int, ...]
    run: Callable[..., int]
    call: Callable[..., None]
    code: tuple[RKernelCode, ...]
    walkers: Functions


_loading = threading.Lock()
_loaded: WeakValueDictionary[str, LoadedModule] = WeakValueDictionary()
# Of the modules that are being loaded: key -> how many of their rKernels are there.
_ready: dict[str, int] = {}


def load_source(artifact: Artifact) -> LoadedModule:
    """Load an emitted module: its rKernels from memory, else from the cache, else compiled side by side."""
    key = artifact.key
    with _loading:
        known = _loaded.get(key)
        if known is not None:
            return known
        try:
            loaded = _loaded[key] = _load(key, artifact.source)
        finally:
            _ready.pop(key, None)
        return loaded


def ready(artifact: Artifact, symbols: Sequence[str]) -> int:
    """How many of a program's rKernels are compiled."""
    return len(symbols) if artifact.key in _loaded else _ready.get(artifact.key, 0)


def _load(key: str, source: str) -> LoadedModule:
    parts = parts_of(source)
    code, walkers = _compiled(key, parts.units, _walkers(parts))
    names: dict[str, Any] = {"__name__": f"irkit_program_{key}"}
    exec(compile(f"{_TABLES}\n{_PROGRAM.split(parts.rest)[-1]}", "<program>", "exec"), names)
    program: Program = names["PROGRAM"]
    program = program.planned(names.get("PLANS", (program,)))
    return LoadedModule(
        program,
        tuple(c.address for c in code),
        walkers.called["run"],
        _call_of(walkers),
        code,
        walkers,
    )


_TABLES = (
    "from irkit.schedule.tables import "
    "Appended, Moving, Operand, Pinned, Port, Program, Ran, Repeated"
)
_PROGRAM = re.compile(r"^(?=PROGRAM = Program\()", re.MULTILINE)


# rKernels


def _compiled(
    key: str, units: Sequence[Unit], walkers: str
) -> tuple[tuple[RKernelCode, ...], Functions]:
    """The machine code of units, in their order, and the functions of the walkers' text."""
    here = machine_code.context()
    keys = [unit.key(here) for unit in units]
    found: dict[str, RKernelCode] = {}
    missing: dict[str, Unit] = {}
    for name, unit in zip(keys, units, strict=True):
        if name in found or name in missing:
            continue
        code = machine_code.in_memory(name) or _from_disk(name)
        if code is None:
            missing[name] = unit
        else:
            found[name] = code

    def count() -> None:
        _ready[key] = sum(name in found for name in keys)

    def made(name: str, payload: bytes) -> None:
        code_store.keep(name, payload)
        found[name] = machine_code.loaded(name, payload)
        count()

    count()
    functions = known_functions(walkers)
    if missing:
        # Beside units, whatever process comes to them.
        payload = _compile(missing, here, made, walkers if functions is None else "")
        code_store.prune()
        if payload is not None:
            functions = made_functions(walkers, payload)
    return tuple(found[name] for name in keys), functions or functions_of(walkers)


def _compile(
    missing: Mapping[str, Unit], here: bytes, made: Callable[[str, bytes], None], walkers: str
) -> bytes | None:
    """Make machine code of units, by their keys: of each form the IR, once, then the code of each unit. What
    the text of walkers compiles to, where there is one."""
    of_walkers: list[bytes] = []
    forms = {name: form_of(unit.text, reals=True) for name, unit in missing.items()}
    of_form: dict[str, list[str]] = {}
    for name, form in forms.items():
        of_form.setdefault(form.text, []).append(name)

    def of_units(lowered: bytes, names: Sequence[str]) -> list[Request]:
        return [_code_request(n, missing[n].symbol, lowered, forms[n]) for n in names]

    def done(request: Request, payload: bytes) -> Sequence[Request]:
        if request.step == "cpu code":
            made(request.key, payload)
            return ()
        if request.step == "cpu functions":
            of_walkers.append(payload)
            return ()
        code_store.keep(request.key, payload)
        return of_units(payload, of_form[request.arguments[0]])

    requests: list[Request] = []
    for text, names in of_form.items():
        key = key_of(text, here + b" form")
        lowered = code_store.kept(key)
        if lowered is None:
            symbol, length = missing[names[0]].symbol, _FORM_LENGTH * len(text)
            requests.append(Request(symbol, "cpu", (text,), length, key))
        else:
            requests += of_units(lowered, names)
    if walkers:
        length = _WALKERS_LENGTH * len(walkers)
        requests.append(Request("the walkers", "cpu functions", (walkers,), length))
    # No process is started for walkers alone.
    expected = len(missing) - (1 if walkers else 0)
    try:
        compile_units(requests, done, expected=expected)
    finally:
        forget_functions()
    return of_walkers[0] if of_walkers else None


def _code_request(key: str, symbol: str, lowered: bytes, form: Form) -> Request:
    return Request(symbol, "cpu code", (lowered, form.values), len(form.text), key)


# Lowering a form takes about so many times as long as making machine code of it, and both together of the
# walkers, whose text is short, so many times.
_FORM_LENGTH, _WALKERS_LENGTH = 4, 16


def _from_disk(key: str) -> RKernelCode | None:
    payload = code_store.kept(key)
    return None if payload is None else machine_code.loaded(key, payload)


# Walkers


def _walkers(parts: Parts) -> str:
    """The text of `run` and `call` of a module: programs with arguments of the same types share it."""
    return f"{parts.header}\n\n{_PROGRAM.split(parts.rest)[0].partition(_AFTER_KERNELS)[2]}"


_AFTER_KERNELS = ")\n"


def _call_of(walkers: Functions) -> Callable[..., Any]:
    """The entry point that binds all arrays of a call and walks."""
    walk = walkers.called["call"]
    # Modules of few arrays, and those that were saved before there were any, have none.
    if not walkers.binders:
        return walk
    binders = (
        (walkers.called[name], _groups(walkers.arity[name] - _BINDER_HEAD, numbers))
        for name, numbers in walkers.binders
    )
    return _GroupedCall(tuple(binders), walk)


def _groups(size: int, numbers: tuple[int, ...]) -> tuple[tuple[Any, tuple[int, ...]], ...]:
    """The arrays of a binder, `size` at a time, the last again in place of what is missing."""
    found: list[tuple[Any, tuple[int, ...]]] = []
    for first in range(0, len(numbers), size):
        group = numbers[first : first + size]
        group += group[-1:] * (size - len(group))
        found.append((np.array(group, dtype=np.int64), group))
    return tuple(found)


_BINDER_HEAD = 2
"""Arguments of a binder that are not arrays of the call: the bases, and which of them."""
