"""Compiled functions that Python calls: the walkers of CPU programs, and what serves all programs.

A module's text compiles as a whole, and is kept as rKernels are (`code_store.py`): object code and the names
of what is in it, and nothing that would be unpickled. Modules of the same text share their functions, whose
machine code goes with the last of them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false
from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue]
from numba.core.environment import Environment

from irkit.runtime import code_store
from irkit.runtime.interrupts import interrupts_held
from irkit.runtime.intrinsics.engine import called_from_python, new_engine
from irkit.runtime.machine_code import context
from irkit.runtime.units import key_of


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions of a module's text that it compiles for Python, by their names.

    They check none of their arguments, of which `arity` has the numbers. `binders`, what the text calls
    `BINDERS`: names of functions, and numbers that go with each.
    """

    called: dict[str, Callable[..., Any]]
    arity: dict[str, int] = field(default_factory=dict[str, int])
    binders: tuple[tuple[str, tuple[int, ...]], ...] = ()


_loading = threading.Lock()
_loaded: WeakValueDictionary[str, Functions] = WeakValueDictionary()


def functions_of(text: str) -> Functions:
    """The compiled functions of a module's text, each of one signature: from memory, disk, or made."""
    return known_functions(text) or made_functions(text, payload(text))


def known_functions(text: str) -> Functions | None:
    """The compiled functions of a text from memory or disk; None where they are to be made."""
    key = _key(text)
    with _loading:
        known = _loaded.get(key)
        if known is None and (kept := code_store.kept(key)) is not None:
            known = _loaded[key] = _functions(kept)
        return known


def made_functions(text: str, payload: bytes) -> Functions:
    """The functions of a text by what `payload` made of it, which is kept."""
    key = _key(text)
    code_store.keep(key, payload)
    code_store.prune()
    with _loading:
        known = _loaded.get(key)
        if known is None:
            known = _loaded[key] = _functions(payload)
        return known


def payload(text: str) -> bytes:
    """What a text compiles to, in any process."""
    with interrupts_held():
        return _payload(text, f"irkit_functions_{_key(text)}")


def _key(text: str) -> str:
    return key_of(text, context() + b" functions")


def _payload(text: str, name: str) -> bytes:
    """Facts as JSON, a zero byte, and object code of one function after another."""
    module = ModuleType(name)
    # Numba finds the functions that it compiles by the name of their module.
    sys.modules[name] = module
    try:
        exec(compile(text, f"<{name}>", "exec"), vars(module))
        found = called_from_python(vars(module))
        names = {id(f): n for n, f in vars(module).items()}
        binders = [(names[id(b)], numbers) for b, numbers in getattr(module, "BINDERS", ())]
    finally:
        del sys.modules[name]
        # Compiled functions refer to these names, which refer to them, where no garbage collector looks.
        vars(module).clear()
    facts = {
        "functions": [(n, f.entry, f.environment, f.arity, len(f.code)) for n, f in found.items()],
        "binders": binders,
    }
    return json.dumps(facts).encode() + b"\0" + b"".join(f.code for f in found.values())


def _functions(payload: bytes) -> Functions:
    head, _, code = payload.partition(b"\0")
    facts = json.loads(head)
    called: dict[str, Callable[..., Any]] = {}
    at = 0
    with interrupts_held():
        for name, entry, environment, _, size in facts["functions"]:
            called[name] = _function(name, entry, environment, code[at : at + size])
            at += size
    return Functions(
        called,
        {name: arity for name, _, _, arity, _ in facts["functions"]},
        tuple((name, tuple(numbers)) for name, numbers in facts["binders"]),
    )


def _function(name: str, entry: str, environment: str, code: bytes) -> Callable[..., Any]:
    """What Python calls, as Numba makes it: it holds an engine of its own, with the machine code."""
    engine = new_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    own = Environment({})
    ctypes.c_void_p.from_address(engine.get_global_value_address(environment)).value = id(own)
    address = engine.get_function_address(entry)
    return _dynfunc.make_function(sys.modules[__name__], name, "", address, own, (engine,))
