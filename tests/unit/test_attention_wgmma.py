"""Attention by warp groups: run thread by thread on a CPU, and built for a GPU."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_attention import attended
from test_attention_mma import BFLOAT16, check, chosen, program, random_case, scheduled
from xdsl.dialects.builtin import StringAttr

from irkit.dialects.precision import PRECISION
from irkit.dialects.types import int_array
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import attention_wgmma
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source

SMALL = attention_wgmma.TILES["128x64"]


def emulated(
    arrays: list[Any], scale: float, causal: int | None, order: str, tasks: int, vector: int = 1
) -> Any:
    """What the template makes of it, of 16-bit floats that may be rounded to."""
    text, shape = program(arrays, scale, causal, order)
    op, _module = scheduled(text)
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr("bf16" if arrays[0].dtype == BFLOAT16 else "f16")
    rkernel = registry.find("cuda", "attention.wgmma128x64")
    assert rkernel.legal(root)
    op.grid = int_array(attention_wgmma.grid_of(SMALL)(root, tasks))
    binder = Binder(op, root, "cuda")
    families.find("attention").bind(binder)
    given = attention_wgmma.parameters_of(SMALL, root)
    names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
    names |= {"THREADS": "256", "VECTOR": str(vector)}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, arrays[0].dtype)
    cuda_emulator.run_text(
        "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body]), "kernel", [*arrays, y],
        int(np.prod(list(op.grid.get_values()))), 1, 256, rkernel.scratch(root, given),
    )  # fmt: skip
    return y


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes(seed: int) -> None:
    arrays, scale, causal = random_case(seed, halves=True)
    if seed == 5:
        # Several blocks of keys, and of rows, and more than one plane.
        rng = np.random.default_rng(1)
        shapes = [(1, 140, 72), (1, 150, 72), (1, 150, 80)]
        arrays = [rng.standard_normal(s).astype(np.float32).astype(BFLOAT16) for s in shapes]
    got = emulated(arrays, scale, causal, "heads", (1, 3)[seed % 2])
    wide = [a if a.dtype == bool else a.astype(np.float32) for a in arrays]
    want = attended(*wide[:3], *(wide[3:] or [None]), scale, causal)
    unit = 2.0**-8 if arrays[0].dtype == BFLOAT16 else 2.0**-11
    check(got, want, 2 * unit)


@pytest.mark.parametrize(
    ("rows", "keys", "causal"), [(40, 330, None), (60, 300, 240), (190, 300, 110), (130, 70, -66)]
)
@pytest.mark.parametrize("splits", [1, 0])
def test_blocks_of_keys_in_turns(
    rows: int, keys: int, causal: int | None, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots are used again and again; the last rows of a part are for both groups, if there are slots."""
    rng = np.random.default_rng(rows)
    shapes = [(2, rows, 24), (2, keys, 24), (2, keys, 16)]
    arrays = [rng.standard_normal(s).astype(np.float32).astype(np.float16) for s in shapes]
    if not splits:
        monkeypatch.setattr(attention_wgmma, "_ROOM", 0)
    op, _module = scheduled(program(arrays, 0.3, causal, "heads")[0])
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr("f16")
    assert attention_wgmma.parameters_of(SMALL, root)["SPLITS"] == splits
    got = emulated(arrays, 0.3, causal, "heads", 1)
    wide = [a.astype(np.float32) for a in arrays]
    check(got, attended(*wide, None, 0.3, causal), 2.0**-10)


@pytest.mark.parametrize(
    ("name", "tokens", "causal", "parts"),
    [
        # 64 rows each, which both groups have: half of the time.
        ("128x128", 512, None, 8),
        # One tile each, whatever else is free.
        ("128x128", 1024, None, 8),
        # A tile and a half each, on all vEUs; where groups cannot share keys, two tiles.
        ("128x128", 2048, None, 11),
        ("128x192", 2048, None, 8),
        # The longest rTask, or what all do: 64 rows each, then 128.
        ("128x128", 1024, 0, 16),
        ("128x128", 2048, 0, 16),
    ],
)
def test_parts_that_take_the_same_time(
    name: str, tokens: int, causal: int | None, parts: int
) -> None:
    arrays = [np.empty((12, tokens, 64), BFLOAT16)] * 3
    op, _module = scheduled(program(arrays, 0.125, causal, "heads")[0])
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr("bf16")
    grid = attention_wgmma.grid_of(attention_wgmma.TILES[name])(root, 132)
    assert grid == [12, parts, 1]


def test_what_is_not_aligned() -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((1, n, 8)).astype(np.float16) for n in (3, 5, 5)]
    got = emulated(arrays, 0.4, 2, "heads", 1, vector=0)
    check(got, attended(*arrays, None, 0.4, 2), 2.0**-10)


def test_it_is_for_16_bit_floats_that_may_be_rounded_to() -> None:
    rkernel = registry.find("cuda", "attention.wgmma128x64")
    for element, precision in ((np.float32, "bf16"), (BFLOAT16, "float32")):
        arrays = [np.empty((2, 64, 64), np.dtype(element))] * 3
        op, _module = scheduled(program(arrays, 0.1, None, "heads")[0])
        root = root_of(op)
        assert root.op is not None
        root.op.attributes[PRECISION] = StringAttr(precision)
        assert not rkernel.legal(root)


@pytest.mark.parametrize(
    ("variant", "size"),
    [
        ("wgmma128x64", 64),
        ("wgmma128x64", 128),
        ("wgmma128x128", 64),
        ("wgmma128x128", 128),
        ("wgmma128x192", 64),
    ],
)
def test_it_becomes_a_cubin_without_spills(variant: str, size: int) -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    arrays = [np.empty((12, 512, size), BFLOAT16)] * 3
    text = program(arrays, size**-0.5, 0, "heads")[0]
    text = text.replace("> {", '> attributes {irkit.precision = "bf16"} {', 1)
    source = chosen(text, registry.find("cuda", f"attention.{variant}"))
    compiled = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    resources = compiled.resources()["op_0"]
    assert resources["spill_stores"] == resources["spill_loads"] == 0
    assert ptx.warnings(compiled.ptx) == ptx.forbidden_forms(compiled.ptx) == []
    assert f"wgmma.mma_async.sync.aligned.m64n{size}k16.f32.bf16.bf16" in compiled.ptx
    # Products that the assembler lets run one after another alone, or registers that it must save first.
    assert "serial" not in compiled.log
    assert "C75" not in compiled.log
