"""Division and roots that call nothing: their PTX, run with exact arithmetic, against NumPy's float32."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from irkit.runtime.cuda.inline_division import without_calls

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
]
MULTIPLIES = "wgmma.mma_async.sync.aligned;\n"


def entry(lines: str, multiplies: bool = True) -> str:
    return f".visible .entry op_0()\n{{\n{MULTIPLIES if multiplies else ''}{lines}\nret;\n}}\n"


def fma(x: float, y: float, z: float) -> float:
    if all(map(math.isfinite, (x, y, z))) and x * y != 0:
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        return float(exact) if exact else 0.0
    return x * y + z


def approximate(value: float) -> float:
    """20 bits of it, as the processor's approximations have."""
    if not math.isfinite(value) or value == 0:
        return value
    fraction, exponent = math.frexp(value)
    return math.ldexp(math.floor(fraction * 2**20) / 2**20, exponent)


def reciprocal(x: float) -> float:
    return approximate(1 / x) if x else math.copysign(math.inf, x)


def reciprocal_root(x: float) -> float:
    return math.nan if x < 0 else approximate(1 / math.sqrt(x)) if x else math.copysign(math.inf, x)


COMPUTE: dict[str, Callable[..., Any]] = {
    "cvt.f64.f32": float,
    "cvt.rn.f32.f64": np.float32,
    "rcp.approx.ftz.f64": reciprocal,
    "rsqrt.approx.ftz.f64": reciprocal_root,
    "neg.f64": lambda x: -x,
    "mul.rn.f64": lambda x, y: x * y,
    "fma.rn.f64": fma,
    "setp.ne.f64": lambda x, y: not math.isnan(x) and x != y,
    "setp.ne.and.f64": lambda x, y, p: not math.isnan(x) and x != y and p,
    "selp.f64": lambda x, y, p: x if p else y,
    "mov.f32": lambda x: x,
}


def run(ptx: str, registers: dict[str, Any]) -> None:
    """The instructions between braces."""
    for name, operands in re.findall(r"^(?:\{ .*\n)?([a-z][\w.]+) (.+?);", ptx, re.M):
        to, *given = operands.split(", ")
        values = [
            registers[o] if o in registers else np.array(int(o[2:], 16), np.uint64).view(np.float64)
            if o.startswith("0d") else np.array(int(o[2:], 16), np.uint32).view(np.float32)
            for o in given
        ]  # fmt: skip
        registers[to] = COMPUTE[name](*(v if isinstance(v, bool) else float(v) for v in values))


def inlined(line: str) -> str:
    found = re.search(r"\{ \.reg.*\}", without_calls(entry(line)), re.S)
    assert found is not None
    return found.group().replace("; }", ";")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def numbers(count: int, seed: int) -> Any:
    """Any bits, what is ordinary, and what is special."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ordinary = rng.standard_normal(count).astype(np.float32)
    return np.concatenate([bits, ordinary, np.array(SPECIAL, np.float32)])


def same(got: Any, want: Any) -> bool:
    return (np.isnan(got) and np.isnan(want)) or np.float32(got).view(np.uint32) == want.view(
        np.uint32
    )


def test_quotients_have_the_same_bits() -> None:
    text = inlined("div.rn.f32 %f3, %f1, %f2;")
    x, y = numbers(1500, 1), numbers(1500, 2)[::-1]
    pairs = [
        *zip(x, y, strict=True),
        *((np.float32(a), np.float32(b)) for a in SPECIAL for b in SPECIAL),
    ]
    # Quotients that are too small for all their bits, some halfway between two.
    pairs += [
        (np.float32(n * 2.0**-149), np.float32(m)) for n in range(1, 40) for m in (2, 3, 4, 8, -16)
    ]
    for a, b in pairs:
        registers: dict[str, Any] = {"%f1": a, "%f2": b}
        run(text, registers)
        assert same(registers["%f3"], a / b), (a, b)


def test_reciprocals_and_roots_have_the_same_bits() -> None:
    for line, want in (("rcp.rn.f32", lambda v: np.float32(1) / v), ("sqrt.rn.f32", np.sqrt)):
        text = inlined(f"{line} %f2, %f1;")
        for a in numbers(1500, 3):
            registers: dict[str, Any] = {"%f1": a}
            run(text, registers)
            assert same(registers["%f2"], want(a)), (line, a)


def test_only_kernels_of_warp_groups_change() -> None:
    line = "\tdiv.rn.f32 %f3, %f1, %f2;"
    alone = entry(line, multiplies=False)
    assert without_calls(alone) == alone
    both = without_calls(alone + entry(line))
    assert both.startswith(alone)
    assert both.count("div.rn.f32") == 1


def test_a_guard_stays_with_the_result() -> None:
    text = without_calls(entry("@!%p7 sqrt.rn.f32 %f2, %f1;"))
    assert "@!%p7 mov.f32 %f2, z;" in text
    assert "sqrt.rn.f32" not in text
