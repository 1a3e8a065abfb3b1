"""One random function, traced and interpreted, or compiled, beside NumPy."""

# pyright: basic

from __future__ import annotations

import linecache
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import irkit
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.driver.programs.jitted import JittedFunction
from irkit.errors import UnsupportedError
from irkit.interp.program import run_program
from tools.fuzz.finding import Finding, TookTooLong, limit
from tools.fuzz.functions.lines import KINDS
from tools.fuzz.functions.source import DTYPES, Array, Source, laid_out

SECONDS = 120.0
COMPILED = 0.1
REFUSED: Counter[str] = Counter()


class Interpreted:
    """A program run by the interpreter of its level."""

    source = ""

    def __init__(self, built: BuiltProgram) -> None:
        self.built = built
        main = function_named(built.module, "main")
        assert main is not None
        self._written = list(written_arguments(main))
        self._results = len(main.function_type.outputs)

    def run(self, buffers: Sequence[Any]) -> tuple[list[Any], Mapping[int, Any]]:
        """Results, and arguments that were written."""
        with np.errstate(all="ignore"):
            found = run_program(
                self.built.module, self.built.weights, buffers, self.built.functions
            )
        return found[: self._results], dict(zip(self._written, found[self._results :], strict=True))

    def ir(self, level: str) -> str:
        """The program level's text."""
        return str(self.built.module)

    def report(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def timelines(self) -> list[Any]:
        """None."""
        return []


def arguments(rng: random.Random) -> list[Any]:
    """Arrays, of which one may be a view of another, and numbers."""
    shape = rng.choice(((4,), (3, 4), (2, 3, 4), (1, 5), (6, 1), (), (3, 3), (2, 1, 3, 2), (17,)))
    found: list[Any] = [laid_out(rng, rng.choice(DTYPES), shape)]
    for _ in range(rng.randint(0, 2)):
        kind, first = rng.random(), found[0]
        if kind < 0.25 and first.ndim:
            found.append(rng.choice((first, first[::-1], first[..., 1:], first.T, first[:1])))
        elif kind < 0.35:
            found.append(rng.choice((2, 0.5, True, -3)))
        else:
            cut = shape[rng.randint(0, len(shape)) :]
            sizes = tuple(1 if rng.random() < 0.2 else s for s in cut)
            found.append(laid_out(rng, rng.choice(DTYPES), sizes))
    return found


def function(rng: random.Random, given: Sequence[Any]) -> Source:
    """A random function of these arguments."""
    s = Source(rng, [f"a{n}" for n in range(len(given))])
    s.known = dict(zip(s.arguments, twins(given), strict=True))
    for _ in range(rng.randint(2, 10)):
        rng.choice(KINDS)(s)
    return s


def twins(given: Sequence[Any]) -> list[Any]:
    """Copies of arguments that lie in memory as these do."""
    bases: dict[int, Array] = {}
    found = list[Any]()
    for value in given:
        if not isinstance(value, np.ndarray):
            found.append(value)
            continue
        base: Any = value if value.base is None else value.base
        copied = bases.setdefault(id(base), base.copy(order="K"))
        offset = value.ctypes.data - base.ctypes.data
        found.append(np.ndarray(value.shape, value.dtype, copied, offset, value.strides))
    return found


def attempt(rng: random.Random) -> Finding | None:
    """One function."""
    given = arguments(rng)
    source = function(rng, given)
    text = source.text()
    if not source.lines:
        return None
    what = judge(text, given, source.inexact, rng.random() < COMPILED)
    shown = "\n".join(map(_shown, given))
    return None if what is None else Finding(what, f"{text}{shown}\n".encode(), ".py")


def _shown(given: Any) -> str:
    if not isinstance(given, np.ndarray):
        return f"# {given}"
    return f"# {given.dtype} {given.shape} {given.strides}"


def made(text: str) -> Any:
    """The function of a text."""
    name, space = f"<random {abs(hash(text))}>", {"np": np}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)  # the text is made here
    return space["f"]


def judge(text: str, given: Sequence[Any], inexact: bool, compiled: bool) -> str | None:
    """What irkit does wrong with a function; None if nothing."""
    f, theirs, ours = made(text), twins(given), twins(given)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = f(*theirs)
        except (ValueError, IndexError, TypeError, OverflowError):
            return None
        try:
            with limit(SECONDS):
                own = JittedFunction(f, Interpreted)
                jitted: Any = irkit.jit(target="cpu")(f) if compiled else own
                got = jitted(*ours)
                # Of an element at a computed index irkit returns a copy.
                theirs = theirs if ".sum() %" not in text else []
                return difference(got, want, ours, theirs, inexact)
        except UnsupportedError as error:
            REFUSED[str(error).partition(": ")[2][:110]] += 1
            return None
        except TookTooLong:
            return f"took more than {SECONDS:.0f} s"
        except Exception:  # anything else is what is looked for
            return traceback.format_exc(limit=-3)


def difference(
    got: Any, want: Any, ours: Sequence[Any], theirs: Sequence[Any], inexact: bool
) -> str | None:
    """Where results, arguments, or what shares memory with what, are not NumPy's."""
    for number, (g, w) in enumerate(zip((*got, *ours), (*want, *theirs), strict=False)):
        what = _different(g, w, inexact)
        if what:
            return f"{'result' if number < len(want) else 'argument'} {number}: {what}"
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        for a, b in zip(ours, theirs, strict=False):
            if isinstance(b, np.ndarray) and np.shares_memory(g, a) != np.shares_memory(w, b):
                return (
                    f"result {number} shares memory with an argument, or does not, unlike NumPy's"
                )
    return None


def _different(g: Any, w: Any, inexact: bool) -> str | None:
    if type(g) is not type(w):
        return f"{type(g)} where NumPy has {type(w)}"
    if not isinstance(w, np.ndarray | np.generic):
        return None if g == w else f"{g} where NumPy has {w}"
    if g.dtype != w.dtype or g.shape != w.shape:
        return f"{g.dtype}{g.shape} where NumPy has {w.dtype}{w.shape}"
    if np.array_equal(g, w, equal_nan=w.dtype.kind == "f"):
        return None
    tolerance = {2: 5e-2, 4: 2e-4, 8: 1e-9}.get(w.dtype.itemsize, 0) if w.dtype.kind == "f" else 0
    x, y = np.asarray(g, np.float64), np.asarray(w, np.float64)
    scale = float(np.abs(y[np.isfinite(y)]).max(initial=1.0))
    if inexact and tolerance and np.allclose(x, y, tolerance, tolerance * scale, equal_nan=True):
        return None
    at = ~np.isclose(x, y, 0, 0, equal_nan=True)
    return f"{np.asarray(g)[at].ravel()[:4]} where NumPy has {np.asarray(w)[at].ravel()[:4]}"
