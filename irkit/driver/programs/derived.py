"""What all derivatives of functions of arrays share: their arguments, and what runs the pass in a trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.state import STATE
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.programs.chunked import chunks_now
from irkit.driver.programs.jitted import JittedFunction, jit
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import fresh, is_traced
from irkit.frontends.numpy.nested import Nested, is_array, mapped, scoped
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.frontends.numpy.replay import replay
from irkit.passes.graph.differentiation import Differentiation, differentiated
from irkit.passes.graph.differentiation.function import OUTPUTS, names_of
from irkit.weights import WeightStore

VALUES = "functionalise,canonicalize,cse,dce,recognise-softmax,recognise-attention,recognise-layer-norm,dce"
"""From a program of arrays to a function of values that is worth differentiating: what has a derivative of
its own, which needs less than that of its parts, is one op."""
CLEAN = "canonicalize,cse,dce"

Arguments = int | str | Sequence[int | str]
"""Which arguments: numbers of positional ones, or their names."""


class Derived:
    """A function's derivative, in a trace."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        """Raises UnsupportedError for what is no function."""
        if not callable(function) or isinstance(function, type):
            kind = type(function).__name__
            raise UnsupportedError(f"{what} of {kind}: expected a function of arrays")
        self.function, self.what = function, what
        self.name = getattr(function, "__qualname__", "function")

    def jitted(self, **options: Any) -> JittedFunction:
        """As what `irkit.jit` makes."""
        apply = self

        def derivative(*args: Any, **kwargs: Any) -> Any:
            return apply(*args, **kwargs)

        derivative.__doc__ = getattr(self.function, "__doc__", None)
        derivative.__name__ = f"{self.what.removeprefix('irkit.')} of {self.name}"
        derivative.__qualname__ = derivative.__name__
        derivative.__signature__ = self.signature()  # pyright: ignore[reportFunctionMemberAccess]
        return jit(**options)(derivative)

    def signature(self) -> inspect.Signature:
        """That of the function."""
        return inspect.signature(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def chosen(self, args: Sequence[Any], which: Arguments) -> list[int]:
        """Numbers of positional arguments. Raises UnsupportedError for one that is not there, or is twice."""
        asked: list[Any] = list(which) if isinstance(which, list | tuple) else [which]
        names = list(inspect.signature(self.function).parameters)
        found: list[int] = []
        for one in asked:
            number = names.index(one) if isinstance(one, str) and one in names else one
            if not isinstance(number, int) or isinstance(number, bool) or number >= len(args):
                raise self.refused(
                    f"there is no argument {one!r} among {len(args)} positional ones"
                )
            found.append(number % len(args) if number >= -len(args) else number)
        if len(set(found)) < len(found):
            raise self.refused(f"argnums={which!r}: an argument is named twice")
        return found

    def floats(self, values: Sequence[Any], numbers: Sequence[int]) -> dict[str, Any]:
        """All arrays in structures, by name. Raises UnsupportedError for what is no array of floats."""
        found: dict[str, Any] = {}
        known = list(inspect.signature(self.function).parameters)
        for value, number in zip(values, numbers, strict=True):
            argument = known[number] if number < len(known) else f"argument {number}"
            for name, leaf in _leaves(value, argument):
                if not is_array(leaf):
                    kind = type(leaf).__name__
                    reason = f"is a {kind}, which is no array: pass numpy.asarray of it"
                    raise self.refused(f"argument '{name}' {reason}")
                array = array_of(leaf)
                if array.dtype.kind in "biuc":
                    raise self.refused(
                        f"argument '{name}' is of {array.dtype}: only floats have a gradient"
                    )
                found[name] = array
        return found

    def refused(self, what: str) -> UnsupportedError:
        """An error of the call that is made."""
        return UnsupportedError(f"{self.what} of '{self.name}': {what}")


def _leaves(structure: Any, name: str) -> list[tuple[str, Any]]:
    """All that is in a structure, with names."""
    if isinstance(structure, dict):
        items = cast("dict[Any, Any]", structure)
        return [x for k, v in items.items() for x in _leaves(v, f"{name}[{k!r}]")]
    if isinstance(structure, list | tuple) and not is_traced(structure):
        several = enumerate(cast("list[Any]", structure))
        return [x for n, v in several for x in _leaves(v, f"{name}[{n}]")]
    return [(name, structure)]


class Lowered:
    """A traced function as one of values, and derivatives of it. `moving`: numbers of the arrays among its
    arguments that are differentiated."""

    def __init__(self, found: Nested, name: str, what: str) -> None:
        self.nested, self.name, self.what = found, name, what
        self._ctx = IrkitContext(weights=found.program.weights)
        register_dialects(self._ctx)
        self._module = found.program.module
        with ONE_BUILDER, library_errors():
            self._run(VALUES)
            self.main = self._named_main()
            _drop_written(self.main, found)

    @property
    def weights(self) -> WeightStore:
        """Its constants."""
        return self._ctx.weights

    def _run(self, passes: str) -> None:
        PipelineRunner(self._ctx, verify=Verify.LEVELS).run(
            self._module, build_pipeline(passes, all_passes())
        )

    def _named_main(self) -> FuncOp:
        main = function_named(self._module, "main")
        assert main is not None
        return main

    def values(self, ask: Differentiation, given: Sequence[Value]) -> list[Value]:
        """What the derivative returns, in the trace at hand; `given` are cotangents or tangents."""
        with ONE_BUILDER, library_errors():
            try:
                ask = replace(ask, chunked=chunks_now())
                made = differentiated(self.main, ask, self.weights)
            except UnsupportedError as error:
                text = str(error).replace("@main", f"{self.what} of '{self.name}'")
                raise UnsupportedError(text) from None
            self.main.detach()
            self._module.body.block.add_op(made)
            self._run(CLEAN)
            found = replay(self._named_main(), self.weights, [*self.nested.given, *given])
        return self._without_checks(found) if ask.value else found

    def _without_checks(self, found: list[Value]) -> list[Value]:
        """What computed whether indices are in bounds is the trace's to say."""
        first = self.nested.results
        checks = len(self.nested.checks)
        for key, number in self.nested.checks.items():
            recorder().require(key, found[number])
        return [*found[:first], *found[first + checks :]]


def _drop_written(main: FuncOp, found: Nested) -> None:
    """What is left in arguments that the function writes is its own."""
    main.attributes.pop(STATE, None)
    end = main.body.block.last_op
    assert end is not None
    count = found.results + len(found.checks)
    end.operands = list(end.operands)[:count]
    main.update_function_type()
    names = names_of(main, OUTPUTS)[:count]
    main.attributes[OUTPUTS] = ArrayAttr([StringAttr(n) for n in names])


class Parts:
    """Arguments, taken apart into arrays that are differentiated and all else."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[int]) -> None:
        self._args, self._numbers = list(args), list(numbers)
        rest = [a for n, a in enumerate(args) if n not in numbers]
        self.rest: Any = [rest, kwargs]

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` as one of the arrays and the rest."""
        traced = scoped(function)

        def apply(moving: Any, rest: Any) -> Any:
            others, kwargs = iter(rest[0]), rest[1]
            chosen = dict(zip(self._numbers, self.like(moving), strict=True))
            args = [chosen[n] if n in chosen else next(others) for n in range(len(self._args))]
            return traced(*args, **kwargs)

        return _Plain(apply)

    def like(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in the structures of the arguments that are differentiated."""
        left = iter(arrays)
        return tuple(mapped(lambda _: next(left), self._args[n]) for n in self._numbers)


class _Plain:
    """A function of irkit's own, which is called as it is."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._call = function

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)


def new_arrays(values: Sequence[Value], scalars: Sequence[bool]) -> list[Any]:
    """New arrays of values."""
    return [fresh(v, scalar=s) for v, s in zip(values, scalars, strict=True)]
