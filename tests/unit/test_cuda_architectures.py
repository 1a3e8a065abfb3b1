"""Every rKernel template, the walkers and whole programs become machine code for each architecture.

Numba translates a module once, since what it makes does not hang on the architecture, which a test holds.
What follows, PTX and its assembly, is done for each as irkit does it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda")

import cuda_samples as cs
from family_programs import cases
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import RandomForestRegressor
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64

from irkit.architectures import ARCHITECTURES
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba import dispatch_cuda, header_cuda, walkers_cuda
from irkit.lower.task_to_numba.dispatch_cuda import Kernel
from irkit.lower.task_to_numba.emit import emit_module, print_roperator
from irkit.lower.task_to_numba.walkers_cuda import Layout
from irkit.rkernels import registry
from irkit.rkernels.legality import refuses_scratch, root_of, why_illegal
from irkit.runtime.artifact import LEVELS
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.compiling import CompiledModule, ModuleIR
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule.block_memory import BlockMemory
from irkit.schedule.devices import device

LAYOUT = Layout(256, BlockMemory(bases=8, max_waits=4, max_operands=10))
GPUS = {
    "a100": "sm_80",
    "rtx3090": "sm_86",
    "rtx4090": "sm_89",
    "b200": "sm_100a",
    "rtx5090": "sm_120",
}
"""A GPU of each architecture that programs are asked for, beside that of all other tests."""
BUILT = (*GPUS.values(), "sm_90a")
"""What templates are built for. Others take code for one of these, or are its next of kin."""
WITHOUT_SAMPLE = {
    "argmax.thread": "argmax",
    "attention.mma128x64_wide": "attention",
    "attention.mma16x128": "attention",
    "attention.mma32x64_parts": "attention in fours",
    "attention.mma64x64": "attention",
    "attention_gradient.mma16x64": "attention query gradient",
    "attention_gradient.mma32x64": "attention key gradient",
    "attention_gradient.mma64x64": "attention key gradient",
    "attention_gradient.rows2": "attention query gradient",
    "csr.thread": "csr",
    "csr.warp": "csr of one column",
    "csr_dense.warp": "csr dense",
    "csr_reduce.thread": "csr maxima",
    "csr_reduce.warp": "csr sums",
    **{f"gate_product.{kind}": "gates" for kind in ("mma128x128", "mma32x32", "sliced16x32")},
    "gemm.tile32_kj": "gemm",
    "integer_product.dots": "bytes",
    **{
        f"integer_product.mma{tile}": program
        for tile, program in (
            ("128x128", "bytes"),
            ("128x64", "columns of bytes"),
            ("64x128", "windows of bytes"),
            ("64x64", "bytes"),
            ("64x32", "columns of bytes"),
            ("32x64", "windows of bytes"),
            ("32x32", "columns of bytes"),
        )
    },
    "pool.inside": "pool",
    "pool.thread": "pool",
    "scatter_add.block": "scatter add",
    "top_k.rank": "top k",
    "top_k.sorted": "top k",
    "product.sliced16x16": "gemm",
    "product.sliced16x32": "gemm",
    "product.tile16x256": "gemm of many columns",
    "product.tile16x32": "gemm",
    "product.tile32x32": "gemm",
    "product.tile32x64": "gemm",
    "product.tile64x128": "gemm",
    "product.tile64x32": "gemm",
    "product.tile64x64": "gemm",
    "reduce.lanes": "sum",
    "reduce.warp": "sum",
    "rowwise.block": "rows",
    "rowwise.long": "rows",
    "rowwise.lanes": "rows of a batch",
    "rowwise.thread": "narrow rows of a batch",
    "rowwise.warp": "rows",
    "row_sums.block": "sums of rows",
    "row_sums.long": "sums of rows",
    "row_sums.lanes": "sums of rows of a batch",
    "row_sums.thread": "sums of narrow rows of a batch",
    "row_sums.warp": "sums of rows",
}
"""rKernels whose fused functions come from a program of `family_programs.py`."""
WORDS = {
    "integer_product": {
        "mma": ("mma.sync.aligned.m16n8k32.row.col.s32.", "ldmatrix.sync.aligned.m8n8.x4"),
        "dot": ("dp4a.s32.u32",),
    }
}
"""What must be in PTX, by family and the beginning of a variant."""


def translated(text: str, entries: list[str], arch: str = "sm_90a") -> ModuleIR:
    module = compiling.load_module(text)
    try:
        return compiling.module_ir(module, entries, LAYOUT.threads, arch)
    finally:
        vars(module).clear()


def check(found: ModuleIR, arch: str) -> CompiledModule:
    """PTX of good forms, and machine code for `arch`, of `found`."""
    text = found.ptx(arch)
    assert f".target {arch}" in text
    assert ptx.forbidden_forms(text) == []
    cubin, log = compiling.assemble(text, arch)
    assert target_of(cubin) == arch.removesuffix("a").removeprefix("sm_")
    return CompiledModule(cubin, text, log)


def target_of(cubin: bytes) -> str:
    """The compute capability that an ELF file of machine code says it is for."""
    assert cubin[:4] == b"\x7fELF"
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return str(flags >> 8 & 0xFF)


@pytest.mark.parametrize("name", sorted(cs.SAMPLES))
def test_a_template_for_each_architecture(name: str) -> None:
    found = translated(*cs.module_text([cs.SAMPLES[name]], LAYOUT, walkers=False))
    for arch in BUILT:
        made = check(found, arch)
        assert ptx.warnings(made.ptx, double_expected=True) == []
        resources = made.resources()["op_0"]
        assert 0 < resources["registers"] <= 255
        assert resources["spill_stores"] == resources["spill_loads"] == 0, arch


def of_program(rkernel_name: str, program: str) -> str:
    """A module of the one rOperator of a program of its family, by an rKernel that may not be the fastest."""
    rkernel = registry.find("cuda", rkernel_name)
    (op, *_) = (c.op for c in cases(program, "h200") if rkernel.legal(root_of(c.op)))
    root = root_of(op)
    literals = rkernel.literals(root)
    op.rkernel, op.fastmath = StringAttr(rkernel_name), rkernel.fastmath
    op.parameters = DictionaryAttr({k: IntegerAttr(v, i64) for k, v in literals.items()})
    op.scratch = IntegerAttr(rkernel.scratch(root, literals), i64)
    assert why_illegal(op, device("h200")) is None
    threads: Any = SimpleNamespace(threads=LAYOUT.threads)
    binding, text = print_roperator(op, threads, "cuda")
    kernel = Kernel(binding.symbol, binding.pointer_types, binding.scratch_bytes, binding.batch)
    walkers = [dispatch_cuda.run_task([kernel]), walkers_cuda.walkers(LAYOUT)]
    return "\n\n".join([header_cuda.IMPORTS, text, *walkers, walkers_cuda.op_kernel(0, kernel)])


@pytest.mark.parametrize("name", WITHOUT_SAMPLE)
def test_an_rkernel_of_a_program_for_each_architecture(name: str) -> None:
    found = translated(of_program(name, WITHOUT_SAMPLE[name]), ["op_0"])
    for arch in BUILT:
        made = check(found, arch)
        resources = made.resources()["op_0"]
        assert resources["spill_stores"] == resources["spill_loads"] == 0, arch
        for word in WORDS.get(name.split(".")[0], {}).get(name.split(".")[1][:3], ()):
            assert word in made.ptx, (arch, word)


def test_walkers_for_each_architecture() -> None:
    found = translated(*cs.module_text([cs.lstm(), cs.SAMPLES["map"]], LAYOUT))
    for arch in BUILT:
        persistent = ptx.functions(check(found, arch).ptx)["persistent"]
        for word in ("ld.acquire.gpu", "red.release.gpu", "cp.async"):
            assert word in persistent, arch


def test_every_architecture_of_the_table_has_machine_code() -> None:
    found = translated(*cs.module_text([cs.SAMPLES["map"]], LAYOUT, walkers=False))
    for arch in ARCHITECTURES:
        check(found, arch)


def test_a_kernel_waits_for_those_before_it_once_it_knows_its_operands() -> None:
    """Where the GPU lets it begin before; all else of it stands behind the wait."""
    text = walkers_cuda.op_kernel(0, Kernel("f", ["float32"], 0), early=True)
    lines = [line.strip() for line in text.splitlines()]
    begin, wait = lines.index("begin_next()"), lines.index("await_previous()")
    assert begin < wait == len(lines) - 2
    assert lines[wait - 1].startswith("a0 = resolve_early(")
    assert "await" not in walkers_cuda.op_kernel(0, Kernel("f", ["float32"], 0))
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])], "g",
            [helper.make_tensor_value_info("x", 1, [64])],
            [helper.make_tensor_value_info("y", 1, [64])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )  # fmt: skip
    for name, waits in (("h200", True), ("a100", False)):
        source = scheduled(model, name)
        assert ("await_previous()" in source) == ("'early': True" in source) == waits


def test_what_numba_makes_does_not_hang_on_the_architecture() -> None:
    """But for its own numbers of things."""

    def lines(arch: str) -> Counter[str]:
        text, entries = cs.module_text([cs.SAMPLES["gemm_tile32"]], LAYOUT, walkers=False)
        made = "\n".join(translated(text, entries, arch).texts)
        named = re.sub(r"irkit_emitted_\w+|_ZN\w+", "", made)
        return Counter(re.sub(r"[0-9]+", "#", line) for line in named.splitlines())

    assert lines("sm_80") == lines("sm_90a")


def scheduled(model: object, name: str) -> str:
    """The module of a model that is planned for the GPU `name`."""
    imported = read_model(model, "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, imported.module, level, name)
    return emit_module(imported.module, ctx.weights, "cuda")


def network() -> object:
    """A convolution, a pool and a product."""
    rng = np.random.default_rng(0)
    weights = {"w": (16, 3, 3, 3), "v": (16, 10)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", (1, 3, 12, 12)), ("y", (1, 10)))
    ]
    initial = [
        numpy_helper.from_array(rng.standard_normal(s, dtype=np.float32), n)
        for n, s in weights.items()
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def forest() -> Any:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 6))
    forest: Any = RandomForestRegressor(20, max_depth=5, random_state=0)
    forest.fit(x, x @ rng.random(6))
    return forest


def wide_forest() -> Any:
    """Of 120 features: a tile of rows is 120 KiB, more than a block of some GPUs has."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 120))
    forest: Any = RandomForestRegressor(60, max_depth=4, random_state=0)
    forest.fit(x, x @ rng.random(120))
    return forest


def test_what_does_not_fit_is_not_offered() -> None:
    imported = read_model(wide_forest(), "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in LEVELS[:-1]:
        run_level(ctx, imported.module, level, "rtx3090")
    staged = registry.find("cuda", "heap_forest.streamed")
    (root,) = (
        root
        for op in imported.module.ops
        if isinstance(op, ROperatorOp) and (root := root_of(op)).family == "heap_forest"
    )
    assert refuses_scratch(staged, root, staged.literals(root), device("h200")) is None
    reason = refuses_scratch(staged, root, staged.literals(root), device("rtx3090"))
    assert reason is not None
    assert reason.endswith(f"bytes of scratch, rtx3090 has {92 * 1024}")
    text = str(imported.module)
    assert 'rkernel = "heap_forest.' in text
    assert 'rkernel = "heap_forest.streamed"' not in text


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("model", ["network", "forest"])
def test_a_program_for_each_gpu(model: str, name: str) -> None:
    """It is planned within what the GPU has, and its machine code is for that GPU."""
    source = scheduled(network() if model == "network" else forest(), name)
    program, facts = read_facts(source)
    gpu = device(name)
    assert (program.device, program.veus, facts.arch) == (name, gpu.veus, GPUS[name])
    assert max(facts.shared_bytes, *facts.scratch) <= gpu.shared_bytes
    made = check(translated(source, facts.entries, facts.arch), facts.arch)
    assert made.resources().keys() == set(facts.entries)
