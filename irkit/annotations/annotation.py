"""What is known of a function that irkit does not compile, kept outside of the library that has it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irkit.annotations.split_types import Broadcast, Elementwise, Generic, SplitType
from irkit.annotations.structures import Argument, ArrayType
from irkit.errors import UnsupportedError

ResultRule = str | ArrayType | Argument | Callable[..., Any]
"""What a result is: as the argument of a name, always the same, or computed from the arguments."""
SplitRule = Mapping[str, SplitType] | Callable[..., Mapping[str, SplitType]]
"""How arguments are split, by parameter."""


@dataclass(frozen=True, eq=False)
class Annotation:
    """A function and what is known of it.

    `parameters`: names, in order; None where Python does not know them. `types`: how arguments are split, by
    parameter, or a function of the arguments that says it; those without one are given whole. `returns`: how
    results are put together. `writes`: parameters whose arrays are written; None: whatever it is given.
    `result`: shapes and dtypes of what it returns; None: to be learnt from a call. `why`: why it is not
    compiled. `callback`: it is called for what it does, once for each time that the program comes to it.
    """

    function: Callable[..., Any]
    parameters: tuple[str, ...] | None = None
    types: SplitRule = field(default_factory=dict[str, SplitType])
    returns: SplitType | None = None
    writes: tuple[str, ...] | None = None
    result: ResultRule | None = None
    device_twin: Callable[..., Any] | None = None
    cost: Callable[..., float] | None = None
    device_cost: Callable[..., float] | None = None
    why: str = "not annotated"
    callback: bool = False
    title: str = ""

    @property
    def name(self) -> str:
        """As it is called in messages."""
        return self.title or name_of(self.function)

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter; further ones by `name[number]`. Raises TypeError for unknown ones."""
        names = self.parameters or ()
        found = dict(zip(names, args, strict=False))
        found |= {f"arguments[{n}]": v for n, v in enumerate(args) if n >= len(names)}
        twice = sorted(set(found) & set(kwargs))
        if twice:
            raise TypeError(f"{self.name}() got multiple values for argument '{twice[0]}'")
        return found | dict(kwargs)


def name_of(function: Callable[..., Any]) -> str:
    """Of a function, as the reader of a message knows it."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    if isinstance(function, np.ufunc):
        homes = (
            m for m in _UFUNCS if getattr(sys.modules.get(m), function.__name__, None) is function
        )
        return ".".join([*list(homes)[:1], function.__name__])
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__qualname__", None) or getattr(
        function, "__name__", type(function).__name__
    )
    if owner is not None and not inspect.ismodule(owner) and not isinstance(owner, type):
        return f"{type(owner).__name__}.{plain.rpartition('.')[2]}"
    module = str(getattr(function, "__module__", None) or "__main__")
    outside = module not in ("__main__", "builtins") and "<locals>" not in plain
    return f"{_public(module)}.{plain}" if outside else plain.rpartition("<locals>.")[2]


_UFUNCS = ("numpy", "scipy.special")
"""Modules of universal functions, which do not say where they are from."""


def _public(module: str) -> str:
    """A module without the rooms of a library that users do not enter."""
    return module.partition("._")[0]


Interceptor = Callable[[Annotation, tuple[Any, ...], dict[str, Any]], Any]
"""Told of calls of annotated functions: gives what stands for their results."""
INTERCEPTOR: ContextVar[Interceptor | None] = ContextVar("interceptor", default=None)


@contextmanager
def intercepting(by: Interceptor) -> Generator[None]:
    """Calls that are made inside go to `by`."""
    token = INTERCEPTOR.set(by)
    try:
        yield
    finally:
        INTERCEPTOR.reset(token)


class Annotated:
    """A function with an annotation. Called in a function that `irkit.jit` compiles, it is one task of the
    host; elsewhere it is the function."""

    def __init__(self, annotation: Annotation) -> None:
        self.annotation = annotation
        functools.update_wrapper(self, annotation.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        intercept = INTERCEPTOR.get()
        if intercept is None:
            return self.annotation.function(*args, **kwargs)
        return intercept(self.annotation, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<annotated {self.annotation.name}>"


_KNOWN: dict[Any, Annotation] = {}


def annotate(
    function: Callable[..., Any],
    /,
    *,
    types: SplitRule | None = None,
    returns: SplitType | None = None,
    writes: Sequence[str] = (),
    result: ResultRule | None = None,
    parameters: Sequence[str] | None = None,
    device_twin: Callable[..., Any] | None = None,
    cost: Callable[..., float] | None = None,
    device_cost: Callable[..., float] | None = None,
) -> Annotated:
    """Say what is known of a function that irkit does not compile; the library that has it stays as it is.

    A call of it in a function that `irkit.jit` compiles is one task of the host, under the name that is
    returned here and under its own. `types`: by parameter, how its array is split (`irkit.annotations`);
    others are given whole; or a function of the same arguments, arrays as `ArrayType`s, that gives this, with
    "return" for the result. `returns`: how results of parts are put together. With both a large call is made
    in parts, by several threads at a time. `writes`: parameters whose arrays it writes; of all others it
    changes no element, which is checked when a compiled call is first made. `result`: the name of a
    parameter, if what is returned has its shape and dtype; an `ArrayType`; an `Argument`, if it is that array
    itself; or a function of the same arguments, arrays among them as ArrayTypes, that gives one of these, or
    a structure of them. Without it the function is called once on copies to see. `parameters`: their names,
    for functions of C that do not say. `device_twin`: the same function of arrays on a GPU, which has
    `__cuda_array_interface__`; a plan may call it in the place of the function. What it starts goes to the
    stream that it is given as `stream` (an address), if it has such a parameter, or to the current one of
    CuPy or PyTorch. `cost`: a function of the same arguments that estimates nanoseconds; `device_cost`:
    those of the twin.

    Raises UnsupportedError for names that are no parameters, and for what cannot be called or told apart.
    """
    if isinstance(function, Annotated):
        function = function.annotation.function
    if not callable(function):
        raise UnsupportedError(f"irkit.annotate of {type(function).__name__}: expected a function")
    names = _parameters(function, parameters)
    made = Annotation(
        function,
        names,
        types if callable(types) else dict(types or {}),
        returns,
        tuple(writes),
        result,
        device_twin,
        cost,
        device_cost,
        why="annotated",
    )
    _check_names(made)
    _check_kinds(made)
    try:
        _KNOWN[function] = made
    except TypeError:
        raise UnsupportedError(
            f"irkit.annotate of '{made.name}': it has no hash, so that calls of it cannot be told"
        ) from None
    return Annotated(made)


def annotation_of(function: object) -> Annotation | None:
    """What was said of a function; None where nothing was."""
    if isinstance(function, Annotated):
        return function.annotation
    with suppress(TypeError):
        return _KNOWN.get(function)
    return None


_UNKNOWN: dict[Any, Annotation] = {}


def unannotated(function: Callable[..., Any], why: str) -> Annotation:
    """That of a function of which nothing is known: it may write whatever it is given."""
    try:
        known = _UNKNOWN.get(function)
    except TypeError:
        return Annotation(function, why=why)
    return known or _UNKNOWN.setdefault(function, Annotation(function, why=why))


def _parameters(
    function: Callable[..., Any], given: Sequence[str] | None
) -> tuple[str, ...] | None:
    if given is not None:
        return tuple(given)
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(p.name for p in found if p.kind not in several)


def _check_kinds(made: Annotation) -> None:
    """Raises UnsupportedError for what is none of what it was given as."""
    types: Mapping[str, Any] = {} if callable(made.types) else made.types
    splits: dict[str, Any] = {f"types['{n}']": t for n, t in types.items()}
    given: dict[str, Any] = {
        "device_twin": made.device_twin,
        "cost": made.cost,
        "device_cost": made.device_cost,
    }
    result: Any = made.result
    odd: list[tuple[str, Any, str]] = [
        (n, t, "a split type")
        for n, t in (splits | {"returns": made.returns or Broadcast()}).items()
        if not isinstance(t, SplitType)
    ]
    wants = {n: ("size", "split") for n in splits} | {"returns": ("merge",)}
    odd += [
        (n, t, f"a split type with {' and '.join(lacking)}()")
        for n, t in (splits | {"returns": made.returns}).items()
        if (lacking := _lacking(t, wants[n]))
    ]
    odd += [(n, f, "a function") for n, f in given.items() if f is not None and not callable(f)]
    if not isinstance(result, str | ArrayType | Argument | type(None)) and not callable(result):
        wanted = "the name of a parameter, an ArrayType, an Argument or a function"
        odd.append(("result", result, wanted))
    for name, value, expected in odd:
        raise UnsupportedError(
            f"irkit.annotate of '{made.name}': {name} is {value!r}: expected {expected}"
        )


def _lacking(split: Any, methods: Sequence[str]) -> list[str]:
    """Which of these methods a split type leaves as they are; types that are left open need none."""
    if not isinstance(split, SplitType) or isinstance(split, Generic | Elementwise):
        return []
    return [name for name in methods if getattr(type(split), name) is getattr(SplitType, name)]


def _check_names(made: Annotation) -> None:
    named = [*(() if callable(made.types) else made.types), *(made.writes or ())]
    if isinstance(made.result, str):
        named.append(made.result)
    known = made.parameters
    if named and known is None:
        raise UnsupportedError(
            f"irkit.annotate of '{made.name}': Python does not know its parameters: name them by parameters="
        )
    odd = [n for n in named if known is not None and n not in known]
    if odd:
        raise UnsupportedError(
            f"irkit.annotate of '{made.name}': no parameter '{odd[0]}'; it has {', '.join(known or ())}"
        )
