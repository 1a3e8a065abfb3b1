"""One random network: what irkit makes of it beside ONNX Runtime."""

# pyright: basic

from __future__ import annotations

import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

import irkit
from irkit.errors import IrkitError, UnsupportedError
from irkit.frontends import import_model
from irkit.interp import run_module
from tools.fuzz.finding import Finding, TookTooLong, limit
from tools.fuzz.networks.control import CONTROL
from tools.fuzz.networks.layers import LAYERS
from tools.fuzz.networks.moving import MOVES
from tools.fuzz.networks.network import Array, Network, NotMade

SECONDS = 120.0
COMPILED = 0.25
"""Which part of networks is compiled; all are interpreted."""
REFUSED: Counter[str] = Counter()
STARTS: tuple[tuple[int, ...], ...] = (
    (1, 3, 7, 6),
    (2, 4, 5, 8),
    (1, 6, 4, 4),
    (1, 4, 17, 1),
    (2, 3, 1, 13),
    (3, 2, 9),
    (2, 5, 6),
    (2, 3, 4, 5, 4),
    (4, 7),
    (5,),
    (),
    (3, 1, 4),
)


def network(rng: random.Random) -> Network:
    """A random network."""
    shape = rng.choice(STARTS)
    dtype = rng.choice(("float32",) * 6 + ("float64", "float16", "int64", "int32"))
    is_open = len(shape) >= 2 and rng.random() < 0.3
    net = Network(rng, next(iter(shape)) if is_open else None)
    net.input(dtype, shape)
    if rng.random() < 0.3:
        net.input(dtype, shape)
    steps = (*LAYERS, *LAYERS, *MOVES, *CONTROL)
    for _ in range(rng.randint(2, 9)):
        _step(net, steps)
    return net


def _step(net: Network, steps: Any) -> None:
    for _ in range(8):
        x = net.values[-1] if net.rng.random() < 0.7 else net.rng.choice(net.values)
        nodes, weights = len(net.nodes), set(net.weights)
        try:
            net.keep(net.rng.choice(steps)(net, x))
            return
        except NotMade:
            del net.nodes[nodes:]
            net.weights = {n: a for n, a in net.weights.items() if n in weights}
            made = {n for node in net.nodes for n in node.output} | {v.name for v in net.inputs}
            net.values = [v for v in net.values if v.name in made]


def reference(model: ModelProto, feeds: dict[str, Array]) -> list[Any] | None:
    """What ONNX Runtime answers, without its own rewrites; None where it has no such kernel."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, feeds))
    except Exception:  # ONNX Runtime has kinds of its own for what it refuses
        return None


def attempt(rng: random.Random) -> Finding | None:
    """One network."""
    net = network(rng)
    if not net.nodes:
        return None
    what = judge(net, rng)
    return None if what is None else Finding(what, net.model().SerializeToString(), ".onnx")


def judge(net: Network, rng: random.Random) -> str | None:
    """What irkit does wrong with a network; None if nothing."""
    model = net.model()
    calls = [net.feeds(1)]
    if net.batch is not None:
        calls.append(net.feeds(2, net.batch + rng.choice((1, 4))))
    known = [(f, w) for f in calls if (w := reference(model, f)) is not None]
    if not known:
        return None
    device = rng.choice(("cpu1", "cpu2")) if rng.random() < COMPILED else None
    try:
        with limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(model, known, device)
    except UnsupportedError as error:
        for line in str(error).splitlines()[-1:]:
            REFUSED[line.strip()[:150]] += 1
        return None
    except IrkitError:
        # Indices that are constant make a network one of a single batch size.
        return None if net.batch is not None else traceback.format_exc(limit=-2)
    except TookTooLong:
        return f"took more than {SECONDS:.0f} s"
    except Exception:  # anything else is what is looked for
        return traceback.format_exc(limit=-3)


def _run(model: ModelProto, known: list[Any], device: str | None) -> str | None:
    run = _interpreted(model) if device is None else _compiled(model, device)
    for feeds, want in known:
        try:
            got = run(feeds)
        except ValueError:  # the interpreter, of a network for one batch size at another
            if device is not None or feeds is known[0][0]:
                raise
            continue
        wrong = difference(got, want, model, feeds)
        if wrong is not None:
            return f"{wrong} on {device or 'the interpreter'}"
    return None


def _interpreted(model: ModelProto) -> Callable[[dict[str, Array]], list[Any]]:
    imported = import_model(model)
    imported.module.verify()
    names = imported.info.inputs
    return lambda feeds: run_module(imported.module, imported.weights, [feeds[n] for n in names])


def _compiled(model: ModelProto, device: str) -> Callable[[dict[str, Array]], list[Any]]:
    program = irkit.compile(model, device=device, cache=False)
    names = [i.name for i in model.graph.input]

    def run(feeds: dict[str, Array]) -> list[Any]:
        found = program(*(feeds[n] for n in names))
        return list(found) if isinstance(found, tuple | list) else [found]

    return run


def difference(got: list[Any], want: list[Any], model: ModelProto, feeds: Any) -> str | None:
    """Where answers differ by more than rounding does."""
    for number, (g, w) in enumerate(zip(got, map(np.asarray, want), strict=True)):
        g = np.asarray(g)
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {number}: {g.dtype}{g.shape} where ONNX Runtime has {w.dtype}{w.shape}"
        if g.dtype == np.float16:  # ONNX Runtime computes in float32, where less overflows
            g, w = (np.where(np.isfinite(g) & np.isfinite(w), v, 0).astype(g.dtype) for v in (g, w))
        if not close(g, w) and not _unstable(model, feeds, want, number):
            at = ~np.isclose(g.astype(float), w.astype(float), rtol=1e-3, atol=1e-4, equal_nan=True)
            return (
                f"output {number}: {g[at].ravel()[:4]} where ONNX Runtime has {w[at].ravel()[:4]}"
            )
    return None


def close(found: Any, wanted: Any) -> bool:
    """Whether two arrays differ by rounding at most."""
    if wanted.dtype.kind != "f":
        return np.array_equal(found, wanted)
    finite = np.abs(wanted[np.isfinite(wanted)]).astype(np.float64)
    scale = max(float(finite.max(initial=1.0)), 1.0)
    relative = {2: 2e-2, 4: 1e-3, 8: 1e-6}[wanted.dtype.itemsize]
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return np.allclose(found, wanted, rtol=relative, atol=relative * scale * 0.1, equal_nan=True)


def _moved(array: Any, noise: np.random.Generator) -> Any:
    """An array, changed by about its rounding."""
    if array.dtype.kind != "f":
        return array
    step = 2e-3 if array.dtype == np.float16 else 1e-6
    factor, more = (noise.standard_normal(array.shape) for _ in "fm")
    return (array * (1 + step * factor) + step * 1e-2 * more).astype(array.dtype)


def _unstable(model: ModelProto, feeds: Any, want: list[Any], number: int) -> bool:
    """Whether ONNX Runtime itself answers otherwise when inputs and weights change by their rounding."""
    for seed in range(4):
        noise, changed = np.random.default_rng(seed), ModelProto()
        changed.CopyFrom(model)
        for weight in changed.graph.initializer:
            array = numpy_helper.to_array(weight)
            if array.ndim:
                weight.CopyFrom(numpy_helper.from_array(_moved(array, noise), weight.name))
        other = reference(changed, {n: _moved(a, noise) for n, a in feeds.items()})
        if other is not None and not close(np.asarray(other[number]), np.asarray(want[number])):
            return True
    return False
