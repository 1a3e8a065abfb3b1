"""`irkit.jit`."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from irkit.annotations.learned import Learned
from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.flags import check_flags
from irkit.driver.programs.apart import GapsNeededError, with_gaps
from irkit.driver.programs.arguments import Flattened, check_array, check_budget
from irkit.driver.programs.chunked import within_budget
from irkit.driver.programs.complex_border import as_complex
from irkit.driver.programs.lowering import Runner
from irkit.driver.programs.memory import Layout, layout_of, overlaps, strided
from irkit.driver.programs.placed import lowered
from irkit.driver.programs.specialised import Specialised
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.numpy.host_calls import NeedExamplesError
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.probing import learn
from irkit.frontends.numpy.recorder import tracing
from irkit.frontends.numpy.tables.objects import NeedNumberError
from irkit.frontends.numpy.trace import ArraySpec, Guard, NewArrayError, Pattern, trace
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.svg import schedule_svg
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

NEEDED = Learned()
"""In place of what is still to be learnt."""
REFITS = 4
"""Programs with estimators as they were for one pattern of arguments; then the host calls their methods."""


OFTEN = f"estimators were fitted anew {REFITS} times"


class JittedFunction:
    """A function of arrays that is traced and compiled when it is first called with a pattern of arguments:
    shapes, dtypes, orders, which arrays overlap, and all that is no array. Any number of threads may call
    it."""

    def __init__(
        self, function: types.FunctionType, lower: Callable[[BuiltProgram], Runner]
    ) -> None:
        """`lower` makes what runs of a program of arrays."""
        self._function, self._lower = function, lower
        self._names = list(inspect.signature(function).parameters)
        self._lock = threading.RLock()
        # By key; of equal keys there are several if what the function reads beside its arguments changes.
        self._known: dict[Hashable, list[Specialised]] = {}
        self._captured: dict[str, Guard] = {}
        self._structures: dict[Hashable, str] = {}
        self._last: Specialised | None = None
        # Whether it has objects of the host's that are no arrays.
        self._numbered = False
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tracing():
            # Called by a function that is being traced: part of it.
            return self._function(*args, **kwargs)
        flat, key = self._flattened(args, kwargs)
        for known in self._known.get(key, ()):
            if all(guard.holds() for guard in known.guards):
                self._last = known
                return known.run(flat.arrays, flat.held, flat.tables, flat.given)
        with self._lock:
            found, flat = self._specialise(args, kwargs)
        self._last = found
        return found.run(flat.arrays, flat.held, flat.tables, flat.given)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _flattened(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Flattened, Hashable]:
        """The arguments, those that are captured last, and their key."""
        flat = Flattened(args, kwargs, self._names, self._numbered)
        for guard in self._captured.values():
            array = guard.later()
            if type(array) is not np.ndarray:
                raise UnsupportedError(
                    f"{user_place()}: '{guard.name}' was an array, and is none any more"
                )
            flat.leaf(array, guard.name)
        facts = tuple(
            (a.shape, a.dtype, a.strides, a.flags.writeable, a.flags.aligned) for a in flat.given
        )
        same = tuple(map(id, flat.given)) if len(flat.given) > 1 else ()
        equal = tuple(same.index(i) for i in same)
        return flat, (flat.key, facts, overlaps(flat.arrays), equal, len(self._captured))

    def _specialise(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Specialised, Flattened]:
        """Trace and compile for these arguments, unless another thread has."""
        learned: Learned | None = None
        gaps = None
        while True:
            flat, key = self._flattened(args, kwargs)
            for known in self._known.get(key, ()):
                if all(guard.holds() for guard in known.guards):
                    return known, flat
            layout = layout_of(flat.arrays, flat.names, flat.is_complex, gaps)
            own = self._known.setdefault(key, [])
            often = sum(known.has_estimators for known in own) >= REFITS
            try:
                if learned is NEEDED:
                    learned = self._learned(flat, layout)
                why = OFTEN if often else ""
                made = within_budget(functools.partial(self._traced, flat, layout, learned, why))
            except NewArrayError as met:
                check_array(met.array, met.guard.name, met.place)
                self._captured[f"{met.guard.name} {len(self._captured)}"] = met.guard
                continue
            except GapsNeededError:
                gaps = with_gaps
                continue
            except NeedExamplesError:
                learned = NEEDED
                continue
            except NeedNumberError:
                self._numbered = True
                continue
            own[:] = [k for k in own if not (often and k.has_estimators)] + [made]
            return made, flat

    def _pattern(self, flat: Flattened, layout: Layout, learned: Learned | None) -> Pattern:
        captured = {
            id(a): n for n, a in enumerate(flat.given) if n >= len(flat.given) - len(self._captured)
        }
        buffers, arrays = layout.buffers, layout.arrays
        return Pattern(buffers, arrays, flat.structure, captured, learned, call=flat.call)

    def _learned(self, flat: Flattened, layout: Layout) -> Learned:
        """What functions of the host return in a run on copies of the arrays."""
        buffers = [np.array(p.buffer(flat.arrays), order="C") for p in layout.places]
        copies = [_as_described(buffers[s.buffer], s) for s in layout.arrays]
        return learn(self._function, self._pattern(flat, layout, None), copies, flat.held)

    def _traced(
        self, flat: Flattened, layout: Layout, learned: Learned | None, not_compiled: str
    ) -> Specialised:
        pattern = replace(self._pattern(flat, layout, learned), not_compiled=not_compiled)
        traced = trace(self._function, pattern)
        kind = (flat.key, tuple((a.ndim, a.dtype) for a in flat.given))
        structure = repr(traced.structure)
        if self._structures.setdefault(kind, structure) != structure:
            raise UnsupportedError(
                f"'{self._function.__qualname__}' returned {self._structures[kind]} before, and now, for "
                f"arrays of other shapes, {structure}"
            )
        return Specialised(traced, layout, flat.names, self._lower, flat.objects)

    # Looking inside

    def _of(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Specialised:
        if args or kwargs:
            with self._lock:
                return self._specialise(args, kwargs)[0]
        if self._last is None:
            raise InvalidModelError(
                f"'{self._function.__qualname__}' was not called yet: call it, or compile it for arguments"
            )
        return self._last

    def compile(self, *args: Any, **kwargs: Any) -> JittedFunction:
        """Trace and compile for arguments like these, and call nothing."""
        self._last = self._of(args, kwargs)
        return self

    def ir(self, level: str = "program") -> str:
        """Textual IR of the pattern that was called last, at "program", "graph", "tensor", "task" or
        "schedule"."""
        return self._of((), {}).runner.ir(level)

    def explain(self) -> str:
        """What was traced for the pattern that was called last, and how it runs, in a few lines."""
        return "\n".join(self._of((), {}).explained())

    def timelines(self) -> list[Timeline]:
        """The planned schedule of the pattern that was called last."""
        return self._of((), {}).runner.timelines()

    def picture(self, title: str | None = None) -> str:
        """The planned schedule of the pattern that was called last, as an SVG picture."""
        return schedule_svg(self.timelines(), title or self._function.__qualname__)

    def trace(self, *args: Any, **kwargs: Any) -> str:
        """The planned schedule of the pattern that was called last, as a trace for Perfetto or
        chrome://tracing, JSON text; with arguments that of theirs, and beside it a run on them as measured,
        after which they are as they were. Raises UnsupportedError for a measured one of a function that calls
        the host, or is several programs."""
        if not args and not kwargs:
            return chrome_trace(self.timelines(), {})
        with self._lock:
            made, flat = self._specialise(args, kwargs)
        return chrome_trace(made.timelines(flat.arrays), {})

    @property
    def source(self) -> str:
        """The emitted Numba module of the pattern that was called last."""
        return self._of((), {}).runner.source

    def report(self) -> dict[str, Any]:
        """What was compiled for the pattern that was called last, and how it runs."""
        return self._of((), {}).runner.report()


def _as_described(buffer: Array, spec: ArraySpec) -> Array:
    """An array of the caller's, in a copy of its memory."""
    strides = tuple(s * buffer.itemsize for s in spec.strides)
    made = strided(buffer, spec.offset, spec.sizes, strides)[...]
    made = as_complex(made[..., 0]) if spec.is_complex else made
    if not spec.writeable:
        made.flags.writeable = False
    return made


@overload
def jit(function: Callable[..., Any], /) -> JittedFunction: ...
@overload
def jit(
    function: None = None,
    /,
    *,
    target: str = "auto",
    device: Any = None,
    mode: str = "auto",
    fastmath: Collection[str] | None = ("afn",),
    cache: bool = True,
    memory_limit: int | None = None,
    memory_budget: int | None = None,
    measure: bool = False,
) -> Callable[[Callable[..., Any]], JittedFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    target: str = "auto",
    device: Any = None,
    mode: str = "auto",
    fastmath: Collection[str] | None = ("afn",),
    cache: bool = True,
    memory_limit: int | None = None,
    memory_budget: int | None = None,
    measure: bool = False,
) -> Any:
    """Compile a function of NumPy arrays: `@irkit.jit`, or `irkit.jit(function)`.

    Its body runs unchanged: it is traced when it is first called, compiled to a program with a proved
    static schedule, and run; arrays that it writes are written. Traced anew is what differs in shapes,
    dtypes, orders or overlaps of arrays, in arguments that are no arrays, or in globals that it reads.
    Results are NumPy's: bit for bit where operations are elementwise arithmetic, comparisons and roundings,
    within rounding for sums and functions. `target`, `device`, `mode`, `cache`: as of `irkit.compile`; with
    "auto" and a GPU at hand, each part runs where the whole is expected to take least (`explain` says why),
    and of a GPU that is named and not at hand the plan is made, while the CPU runs.
    `memory_limit`: bytes of a GPU's memory that a call may take; a function of larger arrays is computed in
    chunks of them, which are copied while others are computed (a sum of floats over all is added chunk by
    chunk). `memory_budget`: bytes of what the program computes that may be in use at once, arguments and
    results apart; what does not fit is computed again (docs/training.md), and a budget below what is possible
    is refused with the least that is. `measure`: whether rKernels, grids and generated nests are chosen by
    what they take on the device, as of `irkit.compile`. `fastmath`: {"afn"} lets exp, sin and their like be
    computed in vector registers, within a few units in the last place; () keeps the C library's.

    Calls raise UnsupportedError, naming the operation and the line of the user's file, for what cannot be
    traced: a Python `if` on the value of an array, a shape that hangs on values, a function of NumPy that
    irkit has not; and what the function and NumPy themselves raise. Arguments are then as they were.
    """
    check_flags("irkit.jit", cache=cache, measure=measure)
    options = {
        "target": target,
        "device": device,
        "mode": mode,
        "fastmath": fastmath,
        "cache": cache,
        "memory_limit": memory_limit,
        "memory_budget": check_budget(memory_budget, "irkit.jit"),
        "measure": measure,
    }
    if function is None:
        return functools.partial(_jitted, options=options)
    return _jitted(function, options)


def _jitted(function: Any, options: dict[str, Any]) -> JittedFunction:
    if not isinstance(function, types.FunctionType):
        raise UnsupportedError(
            f"irkit.jit of {type(function).__name__}: expected a Python function"
        )
    odd = inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function)
    if odd:
        raise UnsupportedError(f"irkit.jit of '{function.__qualname__}': a generator or coroutine")
    return JittedFunction(function, functools.partial(_lower, options=options))


def _lower(built: BuiltProgram, options: dict[str, Any]) -> Runner:
    if options["memory_limit"] is None:
        return lowered(built, options)
    if options.get("memory_budget") is not None:
        raise UnsupportedError("irkit.jit: memory_limit with memory_budget: expected one of them")
    from irkit.driver.programs.paged import limited

    return limited(built, options)
