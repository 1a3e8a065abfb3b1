"""What Numba is not asked twice is what it would have answered."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from irkit.runtime.cuda import unit_code
from irkit.runtime.intrinsics import engine
from irkit.runtime.numba_repeats import CPU, CUDA, live_map, nothing_twice

UNIT = """\
from numba import cuda

from irkit.runtime.intrinsics.cuda import divide, f32p, shared_base, thread_index

fused = cuda.jit(device=True)


@fused
def term(a, b):
    return max(a, b) * 2 if a < b else a - 1.5


@fused
def unit(task, tasks, rows, scratch, p0):
    total, at = 0.0, 0
    for i in range(divide(task, 2)[0], tasks):
        row, column = divide(i, 3)
        while at < column:
            total += term(p0[at], p0[thread_index()])
            at += 1
        for j in range(3):
            p0[i + j] = term(total, j) + term(p0[j], 1)
    p0[rows] = total
"""

CPU_UNIT = """\
from numba import types

from irkit.runtime.intrinsics.cpu import float32p
from irkit.runtime.intrinsics.engine import cfunc, njit


@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
def term(a, b):
    return max(a, b) * 2 if a < b else a - 1.5


@cfunc(types.void(types.int64, types.int64), error_model="numpy")
def unit(tasks, address):
    p0, total = float32p(address), 0.0
    for i in range(tasks):
        while total < i:
            total += term(p0[i], 3)
        p0[i] = term(total, p0[i]) + term(i, 2)
"""


def lowered_for_gpu() -> list[str]:
    found = zlib.decompress(unit_code.lower(UNIT, "sm_90a", (("unit", ("f32p",)),))).decode()
    # They come in the order of a set.
    return sorted(_unnumbered(module) for module in found.split(unit_code.SEPARATOR))


def lowered_for_cpu() -> list[str]:
    return [_unnumbered(text) for text in engine.lowered(CPU_UNIT, {})]


def _unnumbered(text: str) -> str:
    """Without the numbers of functions that this process compiled before, and addresses in it."""
    return re.sub(r"globals\.[0-9a-f]+|\d{9,}|(?<=[Bv$])\d+", "", text)


@pytest.mark.parametrize("lowered", [lowered_for_cpu, lowered_for_gpu])
def test_emitted_text_compiles_to_what_numba_makes_of_it(
    lowered: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered()
    with_all = lowered()
    for module in (unit_code, engine):
        monkeypatch.setattr(module, "nothing_twice", _as_numba_is)
    assert with_all == lowered()


def _as_numba_is(compiler: str, typing: str) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.mark.parametrize("packages", [CPU, CUDA])
def test_numba_is_as_it_was_behind_it(packages: tuple[str, str]) -> None:
    compiler, typing = packages
    owners = [
        (import_module(f"{compiler}.postproc").PostProcessor, "run"),
        (import_module(f"{compiler}.analysis"), "compute_live_map"),
        (import_module("numba.core.types.functions").BaseFunction, "get_call_type"),
        (import_module(f"{compiler}.targetconfig").TargetConfig, "__eq__"),
        (import_module(f"{compiler}.targetconfig").TargetConfig, "__hash__"),
        (import_module(f"{typing}.templates")._TemplateTargetHelperMixin, "_get_target_registry"),
        (import_module(f"{compiler}.ir").Inst, "_rec_list_vars"),
        (import_module(f"{compiler}.base").BaseContext, "get_abi_sizeof"),
    ]
    before = [getattr(*owner) for owner in owners]
    with suppress(KeyError), nothing_twice(*packages):
        assert all(getattr(*o) is not b for o, b in zip(owners, before, strict=True))
        raise KeyError
    assert all(getattr(*o) is b for o, b in zip(owners, before, strict=True))


@pytest.mark.parametrize("packages", [CPU, CUDA])
def test_instructions_have_the_variables_that_numba_finds(packages: tuple[str, str]) -> None:
    ir: Any = import_module(f"{packages[0]}.ir")
    place = ir.Loc("text", 1)

    class Named(tuple[Any, ...]):
        """A kind of tuple of its own."""

    class Special(ir.Var):  # pyright: ignore[reportUntypedBaseClass]
        """A kind of variable of its own."""

    scope = ir.Scope(None, place)
    a, b, c = (ir.Var(scope, name, place) for name in "abc")
    own = Special(scope, "d", place)
    call = ir.Expr.call(a, [b, own, 3], {"given": c}, place, vararg=Named((b, c)))
    for made in (
        ir.Assign(call, a, place),
        ir.Assign(ir.Const((1, "b", None), place), b, place),
        ir.SetItem(a, b, c, place),
        ir.Branch(c, 0, 4, place),
        ir.Expr.build_map([(a, [b, (c, own)]), (b, {})], 2, {}, [], place),
        ir.Yield(a, place, 0),
    ):
        wanted = made.list_vars()
        with nothing_twice(*packages):
            assert made.list_vars() == wanted


@pytest.mark.parametrize("package", [CPU[0], CUDA[0]])
@pytest.mark.parametrize("seed", range(20))
def test_variables_live_where_numba_says(seed: int, package: str) -> None:
    """In blocks with loops, of variables that are defined on some ways and used on others."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 12))
    pairs = rng.integers(count, size=(2 * count, 2)).tolist()
    flow: Any = import_module(f"{package}.controlflow").CFGraph()
    for n in range(count):
        flow.add_node(n)
    for a, b in [*pairs, *((n, n + 1) for n in range(count - 1))]:
        flow.add_edge(a, b)
    flow.set_entry_point(0)
    flow.process()
    blocks = dict.fromkeys(range(count), object())

    def some() -> dict[int, set[str]]:
        return {
            n: {f"v{v}" for v in rng.integers(70, size=rng.integers(9)).tolist()} for n in blocks
        }

    used, defined = some(), some()
    numba: Any = import_module(f"{package}.analysis")
    assert live_map(flow, blocks, used, defined) == numba.compute_live_map(
        flow, blocks, used, defined
    )


def test_calls_are_typed_once_for_types_literals_and_flags() -> None:
    functions: Any = import_module("numba.core.types.functions")
    config: Any = import_module("numba.core.targetconfig")
    flags: Any = import_module("numba.core.compiler").Flags
    types: Any = import_module("numba.core.types")
    asked: list[Any] = []

    class Template:
        key, prefer_literal, metadata = "some", True, {"target": "generic"}

        def __init__(self, context: Any) -> None:
            self.context = context

        def apply(self, args: Any, kws: Any) -> Any:
            asked.append((args, kws))
            return SimpleNamespace(args=tuple(args))

        def get_impl_key(self, signature: Any) -> Any:
            return "some"

    context: Any = import_module("numba.core.registry").cpu_target.typing_context
    one, two = types.literal(1), types.literal(2)
    fast, slow = flags(), flags()
    fast.fastmath = True
    with nothing_twice(*CPU):
        function = functions.Function(Template)
        for mine in (fast, slow, fast.copy()):
            with config.ConfigStack().enter(mine):
                found = [function.get_call_type(context, (t,), {}) for t in (one, two, one)]
            assert [f.args for f in found] == [(one,), (two,), (one,)]
            function.get_call_type(context, (one,), {"n": two})
    assert len(asked) == 5  # both literals by either kind of flags, and once by none


@pytest.mark.parametrize("package", [CPU[0], CUDA[0]])
def test_flags_are_equal_where_their_values_are(package: str) -> None:
    config: Any = import_module(f"{package}.targetconfig")

    class Some(config.TargetConfig):
        a = config.Option(type=int, default=1, doc="")
        b = config.Option(type=int, default=2, doc="")

    class Other(Some):
        pass

    plain, said, changed, other = Some(), Some(), Some(), Other()
    said.a, changed.a = 1, 3
    before = [(a == b, hash(a)) for a in (plain, said, changed, other) for b in (plain, changed)]
    with nothing_twice(*CPU), nothing_twice(*CUDA):
        assert before == [
            (a == b, hash(a)) for a in (plain, said, changed, other) for b in (plain, changed)
        ]
        assert plain != object()


def test_other_threads_compile_anything_meanwhile() -> None:
    """Object mode asks which variables live at the beginning of a block."""
    numba: Any = import_module("numba")

    def counted(values: Any) -> Any:
        total = None
        for value in values:
            total = value if total is None else total + value
        return total

    with nothing_twice(*CPU), ThreadPoolExecutor(1) as pool:
        compiled = numba.jit(forceobj=True, looplift=False)(counted)
        assert pool.submit(compiled, ["a", "b"]).result() == "ab"


def test_a_numba_that_is_made_otherwise_compiles_as_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post = import_module("numba.core.postproc")
    own = post.PostProcessor.run
    with nothing_twice(*CPU):
        assert post.PostProcessor.run is not own
    monkeypatch.delattr(import_module("numba.core.analysis"), "compute_live_map")
    with nothing_twice(*CPU):
        assert post.PostProcessor.run is own
