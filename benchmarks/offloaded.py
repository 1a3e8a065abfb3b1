"""Black-Scholes and haversine as offload annotations run them: ufunc calls with `out=`, float64 vectors.

32 and 16 calls on 5 and 2 inputs, 5 and 3 temporaries. The constants 3.0 and 1.5 and the logarithm of base 2
of the first are not those of the true formula, and are kept so that the work is the same. The same arithmetic
for each peer, as its own users write it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from irkit.dialects import graph
from irkit.dialects.types import tensor_of
from irkit.frontends.array_ops import UFUNCS, Ops
from irkit.frontends.module import GraphBuilder
from irkit.model_info import ModelInfo

C05, C10, INV_SQRT2 = 3.0, 1.5, 1 / math.sqrt(2)
LAT1, LON1, MILES = 0.70984286, 1.23892197, 3959.0
COS_LAT1 = math.cos(LAT1)
Arrays = Sequence[Any]


def black_scholes_numpy(
    np: Any, erf: Any, price: Any, strike: Any, t: Any, rate: Any, vol: Any
) -> Any:
    """(call, put) by 32 calls."""
    tmp, vol_sqrt, rsig, d1, d2, call, put = (np.empty_like(price) for _ in range(7))
    np.multiply(vol, vol, out=rsig)
    np.multiply(rsig, C05, out=rsig)
    np.add(rsig, rate, out=rsig)
    np.sqrt(t, out=vol_sqrt)
    np.multiply(vol_sqrt, vol, out=vol_sqrt)
    np.multiply(rsig, t, out=tmp)
    np.divide(price, strike, out=d1)
    np.log2(d1, out=d1)
    np.add(d1, tmp, out=d1)
    np.divide(d1, vol_sqrt, out=d1)
    np.subtract(d1, vol_sqrt, out=d2)
    for d in (d1, d2):
        np.multiply(d, INV_SQRT2, out=d)
        erf(d, out=d)
        np.multiply(d, C05, out=d)
        np.add(d, C05, out=d)
    np.multiply(rate, -1.0, out=rsig)
    np.multiply(rsig, t, out=rsig)
    np.exp(rsig, out=rsig)
    np.multiply(price, d1, out=call)
    np.multiply(rsig, strike, out=tmp)
    np.multiply(tmp, d2, out=put)
    np.subtract(call, put, out=call)
    np.multiply(rsig, strike, out=tmp)
    np.subtract(C10, d2, out=d2)
    np.multiply(tmp, d2, out=put)
    np.subtract(C10, d1, out=d1)
    np.multiply(price, d1, out=d1)
    np.subtract(put, d1, out=put)
    return call, put


def haversine_numpy(np: Any, lat: Any, lon: Any) -> Any:
    """Miles from a place, by 16 calls."""
    a, dlat, dlon = (np.empty_like(lat) for _ in range(3))
    np.subtract(lat, LAT1, out=dlat)
    np.subtract(lon, LON1, out=dlon)
    np.divide(dlat, 2.0, out=a)
    np.sin(a, out=a)
    np.multiply(a, a, out=a)
    np.cos(lat, out=dlat)
    np.multiply(dlat, COS_LAT1, out=dlat)
    np.divide(dlon, 2.0, out=dlon)
    np.sin(dlon, out=dlon)
    np.multiply(dlon, dlon, out=dlon)
    np.multiply(dlat, dlon, out=dlat)
    np.add(a, dlat, out=a)
    np.sqrt(a, out=a)
    np.arcsin(a, out=a)
    np.multiply(a, 2.0, out=a)
    return np.multiply(a, MILES, out=a)


def black_scholes_of(f: Any, price: Any, strike: Any, t: Any, rate: Any, vol: Any) -> Any:
    """The same for libraries without `out=`: of operators and `f`'s functions."""
    rsig = vol * vol * C05 + rate
    vol_sqrt = f.sqrt(t) * vol
    d1 = (f.log2(price / strike) + rsig * t) / vol_sqrt
    d2 = d1 - vol_sqrt
    d1 = f.erf(d1 * INV_SQRT2) * C05 + C05
    d2 = f.erf(d2 * INV_SQRT2) * C05 + C05
    e_rt = f.exp(rate * -1.0 * t)
    call = price * d1 - e_rt * strike * d2
    put = e_rt * strike * (C10 - d2) - price * (C10 - d1)
    return call, put


def haversine_of(f: Any, lat: Any, lon: Any) -> Any:
    """The same for libraries without `out=`."""
    a, b = f.sin((lat - LAT1) / 2.0), f.sin((lon - LON1) / 2.0)
    return f.asin(f.sqrt(a * a + f.cos(lat) * COS_LAT1 * (b * b))) * 2.0 * MILES


# numexpr has no error function and no logarithm of base 2, and takes one expression at a time.
_HAVERSINE = (
    "arcsin(sqrt(sin((lat - LAT1) / 2) ** 2 + cos(lat) * COS_LAT1 * sin((lon - LON1) / 2) ** 2))"
    " * 2.0 * MILES"
)

_NUMBA = """
import math
from numba import njit, prange
import numpy as np

@njit(parallel=True, fastmath=True)
def black_scholes(price, strike, t, rate, vol):
    call, put = np.empty_like(price), np.empty_like(price)
    for i in prange(price.size):
        rsig = vol[i] * vol[i] * C05 + rate[i]
        vol_sqrt = math.sqrt(t[i]) * vol[i]
        d1 = (math.log2(price[i] / strike[i]) + rsig * t[i]) / vol_sqrt
        d2 = d1 - vol_sqrt
        d1 = math.erf(d1 * INV_SQRT2) * C05 + C05
        d2 = math.erf(d2 * INV_SQRT2) * C05 + C05
        e_rt = math.exp(-rate[i] * t[i])
        call[i] = price[i] * d1 - e_rt * strike[i] * d2
        put[i] = e_rt * strike[i] * (C10 - d2) - price[i] * (C10 - d1)
    return call, put

@njit(parallel=True, fastmath=True)
def haversine(lat, lon):
    y = np.empty_like(lat)
    for i in prange(lat.size):
        a, b = math.sin((lat[i] - LAT1) / 2.0), math.sin((lon[i] - LON1) / 2.0)
        y[i] = math.asin(math.sqrt(a * a + math.cos(lat[i]) * COS_LAT1 * b * b)) * 2.0 * MILES
    return y
"""


class _Traced:
    """A value of a graph with Python's operators, for `black_scholes_of` and `haversine_of`."""

    def __init__(self, ops: Any, value: Any) -> None:
        self.ops, self.value = ops, value

    def _with(self, name: str, *operands: Any) -> _Traced:
        values = [
            x.value if isinstance(x, _Traced) else self.ops.like(x, self.value) for x in operands
        ]
        return _Traced(self.ops, UFUNCS[name](self.ops, *values))

    def __add__(self, x: Any) -> _Traced:
        return self._with("add", self, x)

    def __sub__(self, x: Any) -> _Traced:
        return self._with("subtract", self, x)

    def __rsub__(self, x: Any) -> _Traced:
        return self._with("subtract", x, self)

    def __mul__(self, x: Any) -> _Traced:
        return self._with("multiply", self, x)

    def __truediv__(self, x: Any) -> _Traced:
        return self._with("divide", self, x)


class _Functions:
    """The functions that the two programs use, of `_Traced` values."""

    def __getattr__(self, name: str) -> Callable[[_Traced], _Traced]:
        op = {
            "sqrt": graph.SqrtOp, "log2": graph.Log2Op, "erf": graph.ErfOp, "exp": graph.ExpOp,
            "sin": graph.SinOp, "cos": graph.CosOp, "asin": graph.AsinOp,
        }[name]  # fmt: skip
        return lambda x: _Traced(x.ops, x.ops(op, x.value))


def compiled(program: Offloaded, arrays: Arrays, device: str) -> Any:
    """irkit's program of a module that says the same in graph ops."""
    b = GraphBuilder([(f"x{n}", tensor_of(a)) for n, a in enumerate(arrays)])
    o: Any = Ops(b.ops, b.constant)
    found = program.of(_Functions(), *(_Traced(o, v) for v in b.inputs))
    results = found if isinstance(found, tuple) else (found,)
    outputs = [(f"y{n}", y.value) for n, y in enumerate(results)]
    info = ModelInfo("network", b.names, tuple(name for name, _ in outputs))
    return irkit.compile(b.finish(outputs, info).module, device=device, fastmath={"afn"})


@dataclass(frozen=True)
class Offloaded:
    """A program: of NumPy, of any library's functions, its name in the Numba module, and its inputs."""

    name: str
    numpy: Callable[..., Any]
    of: Callable[..., Any]
    inputs: Callable[[int], Arrays]
    constant: tuple[float, int, tuple[float, ...]]
    """The reference's own input, how many there are, and what comes of it."""

    def by_numpy(self, *arrays: Any) -> Any:
        """As the reference has it, with SciPy's error function."""
        if self.name == "haversine":
            return self.numpy(np, *arrays)
        return self.numpy(np, harness.peer("scipy.special").erf, *arrays)


def _options(size: int) -> Arrays:
    rng = np.random.default_rng(0)
    limits = ((5.0, 30.0), (5.0, 30.0), (0.5, 2.0), (0.01, 0.1), (0.1, 0.6))
    return [rng.uniform(low, high, size) for low, high in limits]


def _places(size: int) -> Arrays:
    rng = np.random.default_rng(1)
    return [rng.uniform(-math.pi / 2, math.pi / 2, size), rng.uniform(-math.pi, math.pi, size)]


PROGRAMS = {
    "Black-Scholes": Offloaded(
        "black_scholes", black_scholes_numpy, black_scholes_of, _options, (4.0, 5, (24.0, 18.0))
    ),
    "haversine": Offloaded(
        "haversine", haversine_numpy, haversine_of, _places, (0.0698132, 2, (4839.95983063,))
    ),
}


def _numexpr(program: Offloaded, arrays: Arrays) -> Callable[[], Any]:
    numexpr = harness.peer("numexpr")
    numexpr.set_num_threads(2)
    if program.name != "haversine":
        raise ImportError("numexpr has no error function")
    names = {"LAT1": LAT1, "LON1": LON1, "COS_LAT1": COS_LAT1, "MILES": MILES}
    values = {**names, "lat": arrays[0], "lon": arrays[1]}
    return lambda: numexpr.evaluate(_HAVERSINE, local_dict=values)


def _numba(program: Offloaded, arrays: Arrays) -> Callable[[], Any]:
    names: dict[str, Any] = {
        "C05": C05, "C10": C10, "INV_SQRT2": INV_SQRT2, "LAT1": LAT1, "LON1": LON1,
        "COS_LAT1": COS_LAT1, "MILES": MILES,
    }  # fmt: skip
    exec(compile(_NUMBA, "<numba peers>", "exec"), names)
    return lambda: names[program.name](*arrays)


def _torch(program: Offloaded, arrays: Arrays) -> Callable[[], Any]:
    torch = harness.peer("torch")
    torch.set_num_threads(2)
    tensors, made = [torch.from_numpy(a) for a in arrays], torch.compile(program.of)
    return lambda: made(torch, *tensors)


def _jax(program: Offloaded, arrays: Arrays) -> Callable[[], Any]:
    jax = harness.peer("jax")
    jax.config.update("jax_enable_x64", True)
    numpy, special = jax.numpy, harness.peer("jax.scipy.special")

    class Functions:
        sqrt, log2, exp, sin, cos, asin = (
            numpy.sqrt, numpy.log2, numpy.exp, numpy.sin, numpy.cos, numpy.arcsin,
        )  # fmt: skip
        erf = special.erf

    made = jax.jit(lambda *v: program.of(Functions, *v))
    on_device = [jax.device_put(a) for a in arrays]
    return lambda: jax.block_until_ready(made(*on_device))


PEERS: dict[str, Callable[[Offloaded, Arrays], Callable[[], Any]]] = {
    "numexpr": _numexpr,
    "Numba parallel": _numba,
    "torch.compile": _torch,
    "JAX": _jax,
}
"""A call of each; ImportError where the library is not there, or has not what the program needs."""
