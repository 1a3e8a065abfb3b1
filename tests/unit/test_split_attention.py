"""Attention of few rows to many keys: parts of the keys, and how they are joined."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_attention import attended, kind
from test_attention import program as whole_program
from test_attention_mma import PARTS, SMALL, of_program

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import AttentionOp
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import ints
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.passes.graph.split_attention import parts_of
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source
from irkit.schedule.devices import device


def program(arrays: list[Any], scale: float, parts: int) -> tuple[str, tuple[int, ...]]:
    """A function of one attention in parts, and the shape of its result."""
    q, k, v = arrays[:3]
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in (q, k, v)))
    shape = (*lead, parts, q.shape[-2], v.shape[-1] + 1)
    y = kind(np.empty(shape, q.dtype))
    names = ["%q", "%k", "%v", "%m"][: len(arrays)]
    arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, arrays, strict=True))
    return (
        f"""func.func @main({arguments}) -> {y} {{
      %y = graph.attention {", ".join(names)} {{scale = {scale!r} : f64, parts = {parts} : i64}}
        : ({", ".join(map(kind, arrays))}) -> {y}
      func.return %y : {y}
    }}""",
        shape,
    )


def in_parts(arrays: list[Any], scale: float, parts: int) -> Any:
    """The meaning in float64, part by part."""
    q, k, v, *mask = arrays
    span, found = -(-k.shape[-2] // parts), list[Any]()
    for n in range(0, k.shape[-2], span):
        keys = slice(n, n + span)
        own = [m[..., keys] if m.shape[-1] > 1 else m for m in mask]
        scores = scale * q.astype(np.float64) @ np.swapaxes(k[..., keys, :], -1, -2)
        for m in own:
            scores = np.where(m, scores, -np.inf) if m.dtype == bool else scores + m
        with np.errstate(all="ignore"):
            weights = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
            seen = own[0] if own else None
            y: Any = attended(q, k[..., keys, :], v[..., keys, :], seen, scale)
        y = np.where(np.isneginf(weights), 0, y)
        found.append(np.concatenate([y, weights], axis=-1))
    return np.stack(found, axis=-3)


def random_case(seed: int) -> tuple[list[Any], float, int]:
    rng = np.random.default_rng(seed)
    heads, rows = (int(n) for n in rng.integers(1, 4, 2))
    parts = int(rng.integers(1, 5))
    keys = int(rng.integers(parts, 40))
    while (parts - 1) * -(-keys // parts) >= keys:
        keys += 1
    size, columns = (int(n) for n in rng.integers(1, 37, 2))
    shapes = [(heads, rows, size), (1, keys, size), (heads, keys, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if seed % 3 == 1:
        arrays.append(rng.standard_normal((rows, keys)).astype(np.float32))
    if seed % 3 == 2:
        # Of some parts no row sees any key.
        arrays.append(rng.random((heads, 1, keys)) < 0.2)
    return arrays, size**-0.5, parts


@pytest.mark.parametrize("seed", range(9))
def test_parts_on_a_cpu_and_at_every_level(seed: int) -> None:
    arrays, scale, parts = random_case(seed)
    text, _ = program(arrays, scale, parts)
    want = in_parts(arrays, scale, parts)
    compiled = irkit.compile(irkit.parse(text), device="cpu2" if seed % 2 else "cpu1")
    np.testing.assert_allclose(compiled(*arrays), want, rtol=0, atol=5e-6)
    for level in ("graph", "tensor", "schedule"):
        got = run_module(irkit.parse(compiled.ir(level)), {}, arrays)[0]
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variant", ["tile16x32", "warp"])
def test_parts_thread_by_thread(variant: str, seed: int) -> None:
    """The templates of a GPU, with as few threads as they take."""
    arrays, scale, parts = random_case(seed)
    text, shape = program(arrays, scale, parts)
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(text)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
    root, rkernel = root_of(op), registry.find("cuda", f"attention.{variant}")
    assert rkernel.threads is not None
    literals = rkernel.literals(root)
    binder = Binder(op, root, "cuda")
    families.find("attention").bind(binder)
    names = {**binder.binding.names, **{k: str(v) for k, v in literals.items()}}
    names |= {"THREADS": str(rkernel.threads), "VECTOR": "0"}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, np.float32)
    cuda_emulator.run_text(
        "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body]), "kernel", [*arrays, y],
        int(np.prod(ints(op.grid))), 1, rkernel.threads, rkernel.scratch(root, literals),
    )  # fmt: skip
    np.testing.assert_allclose(y, in_parts(arrays, scale, parts), rtol=0, atol=5e-6)


@pytest.mark.parametrize("seed", range(6))
def test_parts_on_tensor_cores(seed: int) -> None:
    """Parts of one length, with operands that are copied, in fours and not."""
    rng = np.random.default_rng(seed)
    parts, span, rows = (int(n) for n in rng.integers((1, 1, 1), (5, 30, 20)))
    size, columns = (4 * int(n) if seed % 2 else int(n) for n in rng.integers(1, 8, 2))
    shapes = [(2, rows, size), (1, parts * span, size), (2, parts * span, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if seed % 3:
        arrays.append(rng.random((2, 1, parts * span)) < 0.3)
    text, shape = program(arrays, size**-0.5, parts)
    tile = list(PARTS if seed % 2 else SMALL)[seed // 2]
    got = of_program(arrays, text, shape, "float32", tile, 3, vector=seed % 2)
    np.testing.assert_allclose(got, in_parts(arrays, size**-0.5, parts), rtol=0, atol=1e-5)


def attention(heads: int, rows: int, keys: int, size: int = 64, causal: str = "") -> AttentionOp:
    """The op of a program without values."""
    q, k, y = (
        f"{heads}x{rows}x{size}xf32",
        f"{heads}x{keys}x{size}xf32",
        f"{heads}x{rows}x{size}xf32",
    )
    module = irkit.parse(
        f"func.func @main(%q: tensor<{q}>, %k: tensor<{k}>) -> tensor<{y}> {{ %y = graph.attention %q, "
        f"%k, %k {{scale = 1.0 : f64{causal}}} : (tensor<{q}>, tensor<{k}>, tensor<{k}>) -> tensor<{y}> "
        f"func.return %y : tensor<{y}> }}"
    )
    (op,) = (o for o in module.walk() if isinstance(o, AttentionOp))
    return op


def test_when_keys_are_cut() -> None:
    gpu, cores = device("h200"), device("cpu2")
    few = parts_of(attention(8, 1, 4096), gpu)
    more = parts_of(attention(8, 1, 16384), gpu)
    assert isinstance(few, int)
    assert isinstance(more, int)
    assert 2 <= few <= more <= gpu.veus // 8
    assert 4096 % few == 16384 % more == 0
    assert parts_of(attention(1, 4, 4096), cores) == 2
    for case, target, reason in (
        (attention(8, 1, 100), gpu, "keys are few"),
        (attention(8, 1, 200), gpu, "takes as long"),
        (attention(128, 1, 4096), gpu, "rows of its own"),
        (attention(8, 512, 4096), gpu, "rows of its own"),
        (attention(2, 1, 4096), cores, "rows of its own"),
        (attention(1, 300, 4096, causal=", causal = 5 : i64"), device("b200"), "not written out"),
    ):
        assert reason in str(parts_of(case, target)), (reason, parts_of(case, target))


@pytest.mark.parametrize("seed", range(6))
def test_whole_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, keys = int(rng.integers(1, 9)), int(rng.integers(1500, 4000))
    size, columns = (int(n) for n in rng.integers(8, 100, 2))
    arrays: list[Any] = [
        rng.standard_normal(s).astype(np.float32)
        for s in ((rows, size), (keys, size), (keys, columns))
    ]
    if seed % 3 == 1:
        arrays.append(rng.standard_normal((rows, keys)).astype(np.float32))
    if seed % 3 == 2:
        arrays.append(np.arange(keys) < int(rng.integers(1, keys)))
    causal = keys - rows if seed % 2 and rows > 1 else None
    compiled = irkit.compile(irkit.parse(whole_program(arrays, size**-0.5, causal)), device="cpu2")
    assert "parts = 2" in compiled.ir("graph")
    mask = arrays[3] if len(arrays) > 3 else None
    want: Any = attended(arrays[0], arrays[1], arrays[2], mask, size**-0.5, causal)
    got = compiled(*arrays)
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-6)
    # Parts are joined in one order.
    np.testing.assert_array_equal(compiled(*arrays), got)


def test_rows_that_are_not_numbers() -> None:
    """NaN and infinite scores, and rows that see nothing, are NaN, and no other row is."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, 8)).astype(np.float32) for n in (5, 3000, 3000))
    k[2000] = 0
    q[1, 3], q[2, 3], k[2000, 3] = np.nan, np.inf, 1
    q[4] *= 1000
    seen = np.ones((5, 3000), bool)
    seen[3] = False
    seen[0, :2000] = False
    arrays = [q, k, v, seen]
    compiled = irkit.compile(irkit.parse(whole_program(arrays, 1.0, None)), device="cpu2")
    assert "parts = 2" in compiled.ir("graph")
    got = compiled(*arrays)
    np.testing.assert_array_equal(np.isnan(got).all(1), [False, True, True, True, False])
    want = attended(q[[0, 4]], k, v, seen[[0, 4]])
    np.testing.assert_allclose(got[[0, 4]], want, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", ["a100", "h200", "rtx5090"])
def test_a_decoders_step_for_each_gpu(name: str) -> None:
    """It is cut for the GPU's multiprocessors, and its machine code is built."""
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx
    from irkit.runtime.cuda.facts import read_facts

    arrays = [np.empty(s, np.float32) for s in ((8, 4, 64), (8, 8192, 64), (8, 8192, 64))]
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(whole_program(arrays, 0.125, None))
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, name)
        if level == "graph":
            assert "parts = " in str(module)
    source = emit_module(module, ctx.weights, "cuda")
    facts = read_facts(source)[1]
    compiled = compiling.compile_module_with_ptx(source, facts.entries, 256, facts.arch)
    assert ptx.forbidden_forms(compiled.ptx) == []
    for entry in (e for e in facts.entries if e.startswith("op_")):
        resources = compiled.resources()[entry]
        assert resources["spill_stores"] == resources["spill_loads"] == 0
