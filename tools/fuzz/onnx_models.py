"""Broken ONNX models through the importer: a program, or an error of irkit's own kinds.

Where a mutant is still a model that ONNX Runtime runs and irkit imports, both must compute the same.
"""

from __future__ import annotations

import random
import traceback
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from irkit.errors import IrkitError
from irkit.frontends import import_model
from irkit.interp import run_module
from tools.fuzz.finding import Finding, TookTooLong, limit
from tools.fuzz.onnx_peer import peer

SECONDS = 20.0
LARGEST = 200_000


@cache
def seeds() -> list[bytes]:
    """The models of ONNX's own node tests that irkit may be able to import."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    found = [t.model.SerializeToString() for t in tests if t.model is not None]
    return [m for m in found if len(m) < LARGEST]


def mutant(rng: random.Random) -> bytes:
    """A seed with a few fields changed, or its bytes damaged."""
    data = rng.choice(seeds())
    if rng.random() < 0.15:
        return _damaged(rng, data)
    model = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(_CHANGES)(rng, model)
    return model.SerializeToString()


def _damaged(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.3 else changed)


def _attribute(rng: random.Random, model: ModelProto) -> None:
    attributes = [a for n in model.graph.node for a in n.attribute]
    if not attributes:
        return
    a = rng.choice(attributes)
    numbers = (-(2**63), -3, -2, -1, 0, 1, 2, 3, 17, 2**31, 2**62)
    if a.ints:
        ints = list(a.ints)
        ints[rng.randrange(len(ints))] = rng.choice(numbers)
        del a.ints[:]
        a.ints.extend(ints[: rng.randrange(len(ints) + 1)] if rng.random() < 0.3 else ints)
    elif a.type == onnx.AttributeProto.INT:
        a.i = rng.choice(numbers)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5))
    elif a.type == onnx.AttributeProto.STRING:
        a.s = rng.choice((b"", b"SAME_UPPER", b"reflect", b"\xff", b"linear", b"none"))
    if rng.random() < 0.1:
        a.name = rng.choice(("axis", "axes", "pads", "nonsense", ""))


def _dimension(rng: random.Random, model: ModelProto) -> None:
    values = [*model.graph.input, *model.graph.output]
    dims = [d for v in values for d in v.type.tensor_type.shape.dim]
    if dims and rng.random() < 0.8:
        rng.choice(dims).dim_value = rng.choice((-1, 0, 1, 2, 3, 5, 2**31, 2**40, 2**62))
    elif dims:
        rng.choice(dims).dim_param = rng.choice(("N", "", "batch"))


def _element(rng: random.Random, model: ModelProto) -> None:
    value = rng.choice([*model.graph.input, *model.graph.output])
    value.type.tensor_type.elem_type = rng.randrange(0, 26)


def _operator(rng: random.Random, model: ModelProto) -> None:
    if not model.graph.node:
        return
    other = ModelProto.FromString(rng.choice(seeds()))
    node = rng.choice(model.graph.node)
    if other.graph.node:
        node.op_type = rng.choice(other.graph.node).op_type
    if rng.random() < 0.2:
        node.domain = rng.choice(("ai.onnx.ml", "com.example", "ai.onnx"))


def _names(rng: random.Random, model: ModelProto) -> None:
    """Edges change: a cycle, a name defined twice, a name of nothing."""
    if not model.graph.node:
        return
    node = rng.choice(model.graph.node)
    names = [n for m in model.graph.node for n in (*m.input, *m.output)] or ["x"]
    side = node.input if rng.random() < 0.6 else node.output
    if side:
        side[rng.randrange(len(side))] = rng.choice([*names, "", "nothing"])
    if rng.random() < 0.2:
        model.graph.node.append(node)


def _operator_set(rng: random.Random, model: ModelProto) -> None:
    if model.opset_import:
        rng.choice(model.opset_import).version = rng.choice((0, 1, 6, 7, 9, 11, 13, 18, 99))


_CHANGES = (
    _attribute, _attribute, _attribute, _dimension, _dimension, _element, _operator, _names,
    _operator_set,
)  # fmt: skip


def judge(data: bytes) -> str | None:
    """What is wrong with how irkit takes a model; None if nothing."""
    try:
        model = ModelProto.FromString(data)
    except DecodeError:  # no model at all
        return None
    try:
        with limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imported = import_model(model)
            imported.module.verify()
            return _compared(model, imported)
    except (IrkitError, MemoryError):
        # What the interpreter has no memory for is a model all the same.
        return None
    except TookTooLong:
        return f"took more than {SECONDS:.0f} s"
    except Exception:  # anything else that importing raises is what is looked for
        return traceback.format_exc(limit=-2)


def _compared(model: ModelProto, imported: Any) -> str | None:
    """Random inputs through irkit's interpreter and ONNX Runtime, where both run."""
    rng, inputs = np.random.default_rng(0), {}
    for value in model.graph.input:
        t = value.type.tensor_type
        shape = [d.dim_value or 2 for d in t.shape.dim]
        if np.prod([float(s) for s in shape]) > 1e5 or min(shape, default=1) < 1:
            return None
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        except KeyError:
            return None
        inputs[value.name] = (rng.standard_normal(shape) * 3).astype(dtype)
    want = peer().outputs(model.SerializeToString(), inputs)
    if want is None:
        return None
    if imported.info.string_steps:
        # The interpreter has numbers of strings that the host has made.
        return None
    names = imported.info.inputs
    got = run_module(imported.module, imported.weights, [inputs[n] for n in names])
    for number, (g, w) in enumerate(zip(got, map(np.asarray, want), strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"wrong value: {g.dtype}{g.shape} where ONNX Runtime has {w.dtype}{w.shape}"
        if not _close(g, w) and not _is_rounded_each_step(model, inputs, number, g):
            return f"wrong value: {g.ravel()[:4]} where ONNX Runtime has {w.ravel()[:4]}"
    return None


def _close(found: Any, wanted: Any) -> bool:
    if wanted.dtype.kind == "i":
        # Of what is no integer, as 0 to the power of -1, an x86 makes the least one, others something else.
        is_sure: Any = wanted != np.iinfo(wanted.dtype).min
        found, wanted = found[is_sure], wanted[is_sure]
    elif wanted.dtype.kind == "f":
        # What is masked ONNX Runtime has as the least number, ONNX's own text as -inf.
        found, wanted = (np.where(v == np.finfo(v.dtype).min, -np.inf, v) for v in (found, wanted))
    scale = max(float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)), 1.0)
    # float16 is rounded after each step, whose steps are not the same.
    relative, absolute = (1e-2, 1e-2) if wanted.dtype == np.float16 else (1e-3, 1e-4)
    return np.allclose(found, wanted, rtol=relative, atol=absolute * scale, equal_nan=True)


def _is_rounded_each_step(
    model: ModelProto, inputs: dict[str, Any], number: int, found: Any
) -> bool:
    """Whether a float16 output is what ONNX's own evaluator has. ONNX Runtime may compute in float32, where
    what overflows a float16 on the way does not."""
    if found.dtype != np.float16:
        return False
    try:
        wanted = ReferenceEvaluator(model).run(None, inputs)[number]
    except Exception:  # of any kind, for what it does not run
        return False
    return wanted.dtype == found.dtype and wanted.shape == found.shape and _close(found, wanted)


def attempt(rng: random.Random) -> Finding | None:
    """One mutant."""
    data = mutant(rng)
    what = judge(data)
    return None if what is None else Finding(what, data, ".onnx")
