"""Costs: work is counted from bodies and grids, and priced by the device's rates alone."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

import pytest
from family_programs import gates
from test_byte_products import convolution

import irkit
from benchmarks.rtask_times import Prepared, Sample
from irkit.dialects.packed_terms import SCALED
from irkit.dialects.task.rates import RATES
from irkit.errors import UnsupportedError
from irkit.rkernels import registry
from irkit.rkernels.work import Work, work
from irkit.schedule import devices
from irkit.schedule.devices import device

KERNELS = Path(irkit.__file__).parent / "rkernels"
CPU = device("cpu2")


def text(op: str, types: str, result: str, more: str = "", granted: str = "") -> str:
    names = [f"%x{n}" for n in range(len(types.split(", ")))]
    declared = ", ".join(f"{n}: {t}" for n, t in zip(names, types.split(", "), strict=True))
    return (
        f"func.func @main({declared}) -> {result} {granted} {{\n"
        f"  %y = graph.{op} {', '.join(names)} {more} : ({types}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )


def samples(module: str, name: str = "cpu2") -> list[Sample]:
    prepared = Prepared.of("test", irkit.parse(module), name)
    prepared.schedule()
    return prepared.samples()


def only(module: str, name: str = "cpu2") -> Sample:
    (found,) = samples(module, name)
    return found


def unary(op: str, shape: str = "128x256xf32", granted: str = "", name: str = "cpu2") -> Sample:
    return only(text(op, f"tensor<{shape}>", f"tensor<{shape}>", granted=granted), name)


# The sum


def test_the_slowest_lane_counts_and_serial_work_is_added():
    rates = {"fma": 2.0, "op": 1.0, "byte": 3.0, "round": 50.0, "start": 10.0}
    made = dataclasses.replace(CPU, rates=rates)
    assert work(fma=4, op=2, byte=1, start=1).nanoseconds(made) == 10 + 10
    assert work(fma=4, op=2, byte=5, start=1).nanoseconds(made) == 15 + 10
    assert work(fma=4, byte=5, round=1, start=1).nanoseconds(made) == 50 + 10


def test_work_adds_up():
    assert work(fma=1, op=2) + work(op=3) == work(fma=1, op=5)
    assert work(fma=1, op=2) * 3 == work(fma=3, op=6)
    with pytest.raises(AssertionError, match="flop"):
        work(flop=1)


def test_work_without_a_rate_is_refused_by_name():
    bare = dataclasses.replace(CPU, name="bare", rates={"byte": 1.0})
    with pytest.raises(UnsupportedError, match="device 'bare': it has no rate 'tanh'"):
        work(tanh=1).nanoseconds(bare)
    # What is not done needs no price.
    assert work(tanh=0, byte=2).nanoseconds(bare) == 2


def test_a_device_that_cannot_price_a_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "_REGISTRY", dict(devices._REGISTRY))
    bare = dataclasses.replace(CPU, name="bare", rates={"byte": 1.0})
    with pytest.raises(UnsupportedError, match="device 'bare': it has no rate"):
        irkit.compile(irkit.parse(text("tanh", "tensor<8xf32>", "tensor<8xf32>")), device=bare)


# What is counted


def test_functions_are_priced():
    relu, tanh = unary("relu"), unary("tanh")
    assert tanh.work["tanh"] == 64 * 256
    assert "tanh" not in relu.work
    assert tanh.estimate_ns > 20 * relu.estimate_ns


def test_one_call_makes_a_loop_go_element_by_element():
    assert "scalar" not in unary("relu").work
    assert "op" not in unary("tanh").work


def test_what_may_be_approximated_runs_in_vectors():
    granted = "attributes {irkit.fastmath = #arith.fastmath<afn>}"
    found = unary("tanh", granted=granted)
    assert 0.7 < found.work["approximate"] / (64 * 256) < 1, (
        "constants are read once for four vectors"
    )
    assert not {"tanh", "scalar"} & found.work.keys()
    assert unary("sinh", granted=granted).work["function"] == 64 * 256


def test_vectors_hold_fewer_wide_elements():
    assert unary("sqrt", "128x256xf64").work["divide"] == 2 * unary("sqrt").work["divide"]


def test_an_element_that_two_ops_need_is_computed_once():
    module = """
    func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %e = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %s = graph.mul %e, %e : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      func.return %s : tensor<64x64xf32>
    }"""
    assert only(module).work["exp"] == 32 * 64


def test_an_epilogue_is_counted():
    module = """
    func.func @main(%x: tensor<16x1000xf32>) -> tensor<16x1000xf32> {
      %s = graph.softmax %x {axis = 1 : i64} : (tensor<16x1000xf32>) -> tensor<16x1000xf32>
      %t = graph.tanh %s : (tensor<16x1000xf32>) -> tensor<16x1000xf32>
      func.return %t : tensor<16x1000xf32>
    }"""
    found = only(module)
    # The template has the exponential of an element twice, the epilogue its tangent once.
    assert (found.work["exp"], found.work["tanh"]) == (2 * 8 * 1000, 8 * 1000)


def test_a_prologue_is_counted():
    settings = '{kind = "sum", axes = array<i64: 1>, keepdims = false}'
    module = f"""
    func.func @main(%x: tensor<16x100xf32>) -> tensor<16xf32> {{
      %e = graph.exp %x : (tensor<16x100xf32>) -> tensor<16x100xf32>
      %s = graph.reduce %e {settings} : (tensor<16x100xf32>) -> tensor<16xf32>
      func.return %s : tensor<16xf32>
    }}"""
    assert only(module).work["exp"] == 8 * 100


def test_work_shrinks_with_the_part():
    one, four = unary("tanh", name="cpu1"), unary("tanh", name="cpu4")
    assert one.work["tanh"] == 4 * four.work["tanh"]
    assert one.work["byte"] == 4 * four.work["byte"]


def test_a_transposition_reads_from_afar():
    turned = "{permutation = array<i64: 1, 0>}"
    few = only(text("transpose", "tensor<64x4xf32>", "tensor<4x64xf32>", turned))
    assert few.work["stride"] == 4 * 64
    # Tiles are copied, and then lie side by side.
    found = only(text("transpose", "tensor<64x32xf32>", "tensor<32x64xf32>", turned))
    assert found.work["pack"] == 64 * 32
    assert found.work.get("stride", 0) == 0


def test_a_long_product_waits_for_itself():
    settings = '{kind = "prod", axes = array<i64: 1>, keepdims = false}'
    many = only(text("reduce", "tensor<8x4096xf32>", "tensor<8xf32>", settings))
    few = only(text("reduce", "tensor<8x16xf32>", "tensor<8xf32>", settings))
    assert many.work["chain"] == 4 * 4096
    assert "chain" not in few.work


_BY_ROWS = "{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64}"


def narrow(kind: str, a: str, b: str, y: str) -> str:
    """A product in i32 of a times b, transposed, both of `kind`."""
    wide = [
        f"%{n}w = graph.cast %{n} {{to = i32}} : (tensor<{s}x{kind}>) -> tensor<{s}xi32>"
        for n, s in (("a", a), ("b", b))
    ]
    types = f"(tensor<{a}xi32>, tensor<{b}xi32>) -> tensor<{y}xi32>"
    head = f"func.func @main(%a: tensor<{a}x{kind}>, %b: tensor<{b}x{kind}>) -> tensor<{y}xi32> {{"
    last = f"%y = graph.gemm %aw, %bw {_BY_ROWS.replace('0.0', '1.0')} : {types}"
    return "\n".join([head, *wide, last, f"func.return %y : tensor<{y}xi32>", "}"])


def rows(shape: str, lead: str, element: str = "f32") -> str:
    """What is left of rows without their sums, and the squares of that."""
    x, one, each = (f"tensor<{s}x{element}>" for s in (shape, f"{lead}x1", lead))
    kind = '{kind = "mean", axes = array<i64: 1>, keepdims = KEPT}'
    return f"""func.func @main(%x: {x}) -> ({x}, {each}) {{
      %s = graph.reduce %x {kind.replace("KEPT", "true")} : ({x}) -> {one}
      %d = graph.sub %x, %s : ({x}, {one}) -> {x}
      %q = graph.mul %d, %d : ({x}, {x}) -> {x}
      %y = graph.reduce %q {kind.replace("KEPT", "false")} : ({x}) -> {each}
      func.return %d, %y : {x}, {each}
    }}"""


PROGRAMS = {
    "gates": gates(),
    "rows and their sums": rows("64x1024", "64"),
    "rows of a warp and their sums": rows("640x128", "640"),
    "short rows and their sums": rows("6400x20", "6400"),
    "rows of four and their sums": rows("6400x4", "6400"),
    "long rows and their sums": rows("4x16384", "4", "f64"),
    "bytes": narrow("i8", "64x64", "64x64", "64x64"),
    "few rows of bytes": narrow("ui8", "4x512", "64x512", "4x64"),
    "16-bit integers": narrow("i16", "64x64", "64x64", "64x64"),
    "narrow map": text("relu", "tensor<64x13xf32>", "tensor<64x13xf32>"),
    "short rows": text("relu", "tensor<64x4xf32>", "tensor<64x4xf32>"),
    "transposition": text(
        "transpose",
        "tensor<512x512xf32>",
        "tensor<512x512xf32>",
        "{permutation = array<i64: 1, 0>}",
    ),
    "top k": """func.func @main(%x: tensor<8x64xf32>) -> tensor<8x5xi64> {
  %y, %i = graph.top_k %x {k = 5 : i64, axis = 1 : i64, largest = false}
    : (tensor<8x64xf32>) -> (tensor<8x5xf32>, tensor<8x5xi64>)
  func.return %i : tensor<8x5xi64>
}""",
    "scatter": text(
        "scatter_add", "tensor<40x64xf32>, tensor<100xi64>, tensor<100x64xf32>", "tensor<40x64xf32>"
    ),
    "map": text("relu", "tensor<64x64xf32>", "tensor<64x64xf32>"),
    "map of a batch": text("relu", "tensor<?x64xf32>", "tensor<?x64xf32>"),
    "map of polynomials": text(
        "exp",
        "tensor<64x64xf32>",
        "tensor<64x64xf32>",
        granted="attributes {irkit.fastmath = #arith.fastmath<afn>}",
    ),
    "gemm": text("matmul", "tensor<?x64xf32>, tensor<64x32xf32>", "tensor<?x32xf32>"),
    "few terms": text("matmul", "tensor<?x20xf64>, tensor<20x96xf64>", "tensor<?x96xf64>"),
    "few terms by rows": text(
        "gemm", "tensor<?x20xf64>, tensor<96x20xf64>", "tensor<?x96xf64>", _BY_ROWS
    ),
    "product": text("matmul", "tensor<64x64xf32>, tensor<64x64xf32>", "tensor<64x64xf32>"),
    "product of few rows": text(
        "matmul", "tensor<4x900xf32>, tensor<900x400xf32>", "tensor<4x400xf32>"
    ),
    "product of a transposed factor": text(
        "gemm",
        "tensor<64x80xf32>, tensor<64x96xf32>",
        "tensor<80x96xf32>",
        "{trans_a = true, trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64}",
    ),
    "product, rounded": text(
        "matmul",
        "tensor<256x64xf32>, tensor<64x256xf32>",
        "tensor<256x256xf32>",
        granted='attributes {irkit.precision = "bf16"}',
    ),
    "product in TF32": text(
        "gemm",
        "tensor<64x256xf32>, tensor<64x256xf32>, tensor<64xf32>",
        "tensor<64x64xf32>",
        _BY_ROWS,
        granted='attributes {irkit.precision = "tf32"}',
    ),
    "product of 16 bits": text(
        "matmul",
        "tensor<256x256xbf16>, tensor<256x256xbf16>",
        "tensor<256x256xbf16>",
        granted='attributes {irkit.precision = "bf16"}',
    ),
    "attention": text(
        "attention",
        "tensor<2x4x40x32xf32>, tensor<2x4x48x32xf32>, tensor<2x4x48x32xf32>",
        "tensor<2x4x40x32xf32>",
        "{scale = 0.25 : f64}",
    ),
    "gradient of queries": text(
        "attention_query_gradient",
        "tensor<8x40x32xf32>, tensor<8x48x32xf32>, tensor<8x48x32xf32>, tensor<8x40x32xf32>",
        "tensor<8x40x34xf32>",
        "{scale = 0.25 : f64}",
    ),
    "attention of 16-bit floats": text(
        "attention",
        "tensor<4x40x64xbf16>, tensor<4x48x64xbf16>, tensor<4x48x64xbf16>",
        "tensor<4x40x64xbf16>",
        "{scale = 0.25 : f64}",
        granted='attributes {irkit.precision = "bf16"}',
    ),
    "gemv": text("gemm", "tensor<1x2048xf32>, tensor<64x2048xf32>", "tensor<1x64xf32>", _BY_ROWS),
    "few rows": text("gemm", "tensor<4x512xf32>, tensor<64x512xf32>", "tensor<4x64xf32>", _BY_ROWS),
    "batch by rows": text(
        "gemm", "tensor<?x64xf32>, tensor<32x64xf32>", "tensor<?x32xf32>", _BY_ROWS
    ),
    "pool": text(
        "max_pool",
        "tensor<1x4x64x64xf32>",
        "tensor<1x4x2x2xf32>",
        "{kernel_shape = array<i64: 32, 32>, strides = array<i64: 32, 32>, "
        "pads = array<i64: 0, 0, 0, 0>}",
    ),
    "pool of padded windows": text(
        "max_pool",
        "tensor<1x4x64x64xf32>",
        "tensor<1x4x32x32xf32>",
        "{kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, "
        "pads = array<i64: 1, 1, 0, 0>}",
    ),
    "softmax": text("softmax", "tensor<8x2048xf32>", "tensor<8x2048xf32>", "{axis = 1 : i64}"),
    "softmax, approximate": text(
        "softmax",
        "tensor<8x64xf32>",
        "tensor<8x64xf32>",
        "{axis = 1 : i64}",
        "attributes {irkit.fastmath = #arith.fastmath<afn>}",
    ),
    "softmax of long rows": text(
        "softmax", "tensor<8x65536xf32>", "tensor<8x65536xf32>", "{axis = 1 : i64}"
    ),
    "softmax of short rows": text(
        "softmax",
        "tensor<64x9xf32>",
        "tensor<64x9xf32>",
        "{axis = 1 : i64}",
        "attributes {irkit.fastmath = #arith.fastmath<afn>}",
    ),
    **{
        f"layer norm of {n}": text(
            "layer_norm",
            f"tensor<8x{n}xf32>",
            f"tensor<8x{n}xf32>",
            "{epsilon = 1.0e-5 : f64, centred = true}",
        )
        for n in (64, 2048, 10000)
    },
    "row by a matrix": text(
        "matmul", "tensor<1x512xf32>, tensor<512x256xf32>", "tensor<1x256xf32>"
    ),
    "rows by a column": text("matmul", "tensor<64x600xf32>, tensor<600x1xf32>", "tensor<64x1xf32>"),
    "rows by few columns": text(
        "matmul", "tensor<64x50xf32>, tensor<50x3xf32>", "tensor<64x3xf32>"
    ),
    "inserted": """func.func @main(%x: tensor<4x6xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = tensor.insert_slice %x into %y[1, 1] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<8x8xf32>
  func.return %r : tensor<8x8xf32>
}""",
    "both products": """func.func @main(%a: tensor<64x70xf32>, %x: tensor<70xf32>) -> tensor<2x102xf32> {
  %y = te.gemvt %a, %x {parts = 2 : i64} : (tensor<64x70xf32>, tensor<70xf32>) -> tensor<2x102xf32>
  func.return %y : tensor<2x102xf32>
}""",
    "both products, apart": """func.func @main(%a: tensor<64x70xf32>, %x: tensor<70xf32>, %r: tensor<64xf32>)
    -> tensor<2x102xf32> {
  %y = te.gemvt %a, %x, %r {parts = 2 : i64}
    : (tensor<64x70xf32>, tensor<70xf32>, tensor<64xf32>) -> tensor<2x102xf32>
  func.return %y : tensor<2x102xf32>
}""",
    "nibbles": """func.func @main(%x: tensor<4x64xf32>, %q: tensor<2x32x64xui8>, %s: tensor<2x2x64xf32>)
    -> tensor<4x100xf32> {
  %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64}
    : (tensor<4x64xf32>, tensor<2x32x64xui8>, tensor<2x2x64xf32>) -> tensor<4x100xf32>
  func.return %y : tensor<4x100xf32>
}""",
    "argmax": text(
        "argmax", "tensor<8x64xf32>", "tensor<8xi64>", "{axis = 1 : i64, keepdims = false}"
    ),
    "reduce": text(
        "reduce",
        "tensor<8x4096xf32>",
        "tensor<8xf32>",
        '{kind = "max", axes = array<i64: 1>, keepdims = false}',
    ),
    "sum": text(
        "reduce",
        "tensor<8x4096xf32>",
        "tensor<8xf32>",
        '{kind = "sum", axes = array<i64: 1>, keepdims = false}',
    ),
    "many elements": text("exp", "tensor<512x512xf32>", "tensor<512x512xf32>", ""),
    "bytes of images": convolution(0, 8, 32, 12, 1, ("ui8", "i8"), "image")[0],
    "depthwise": text(
        "conv",
        "tensor<1x32x16x16xf32>, tensor<32x1x3x3xf32>",
        "tensor<1x32x16x16xf32>",
        "{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, "
        "dilations = array<i64: 1, 1>, group = 32 : i64}",
    ),
    "few filters of large images": text(
        "conv",
        "tensor<32x2x32x32xf32>, tensor<16x2x3x3xf32>",
        "tensor<32x16x32x32xf32>",
        "{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, "
        "dilations = array<i64: 1, 1>, group = 1 : i64}",
    ),
    "filters of few channels": text(
        "conv",
        "tensor<1x4x8x8xf32>, tensor<16x4x3x3xf32>",
        "tensor<1x16x8x8xf32>",
        "{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, "
        "dilations = array<i64: 1, 1>, group = 1 : i64}",
    ),
    "chosen by a mask": text(
        "where", "tensor<1000xi1>, tensor<1000xf32>, tensor<1000xf32>", "tensor<1000xf32>"
    ),
    "product of a constant": (
        "func.func @main(%x: tensor<12x64xf32>) -> tensor<12x96xf32> {\n"
        "  %w = arith.constant dense<1.5> : tensor<64x96xf32>\n"
        "  %y = graph.matmul %x, %w : (tensor<12x64xf32>, tensor<64x96xf32>) -> tensor<12x96xf32>\n"
        "  func.return %y : tensor<12x96xf32>\n}"
    ),
    "conv": text(
        "conv",
        "tensor<1x64x8x8xf32>, tensor<8x64x3x3xf32>",
        "tensor<1x8x8x8xf32>",
        "{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, "
        "dilations = array<i64: 1, 1>, group = 1 : i64}",
    ),
}


@pytest.mark.parametrize("name", ["cpu2", "h200"])
def test_every_rkernel_that_takes_a_root_has_a_price(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.rtask_times._FACTOR", 1e9)
    seen = set[str]()
    # Terms are packed on a GPU alone.
    ways: list[tuple[bool, str, str]] = [(False, "", "")]
    if name == "h200":
        ways += [(True, "", ""), (True, "", SCALED)]
    # Both products with a matrix are one op on a CPU alone, and matrices are of 4 bits there.
    alone = ("both products", "nibbles")
    programs = [p for n, p in PROGRAMS.items() if not n.startswith(alone) or name == "cpu2"]
    jobs = list(itertools.product(programs, ways))
    if name == "h200":
        few = PROGRAMS["product of few rows"]
        jobs += [
            (few, (True, only, terms)) for only in ("first", "second") for terms in ("", SCALED)
        ]
    for module, (packed, only, terms) in jobs:
        prepared = Prepared.of("test", irkit.parse(module), name, packed, only=only, terms=terms)
        for number, variant in enumerate(prepared.variants(prepared.device.veus)):
            # Variants differ in the heaviest rOperator alone, of which an rKernel is chosen.
            if number == 0:
                variant.schedule()
            for found in variant.samples():
                seen.add(found.rkernel)
                assert found.work.keys() <= RATES.keys()
                assert all(units > 0 for units in found.work.values())
                assert 0 < found.estimate_ns < 1e9
    target = "cuda" if name == "h200" else "cpu"
    known = {k.name for k in registry.registered(target)}
    # What says its schedule, or is measured, has the last of them.
    elsewhere = {
        n for n in known if "forest" in n or n.startswith(("recurrent_cell", "cell_rows", "csr"))
    }
    elsewhere |= known & {"generated.nest"}
    # Where extents are known, gradients of attention are written out for a CPU.
    elsewhere |= {k for k in known if k.startswith("attention_gradient") and target == "cpu"}
    # Rows and their sums are one op in what is planned for a GPU.
    elsewhere |= {k for k in known if k.startswith(("rowwise", "row_sums")) and target == "cpu"}
    assert known - seen == elsewhere


def test_no_nanosecond_stands_in_a_file_of_rkernels():
    for path in sorted(KERNELS.rglob("*.py")):
        found = re.findall(r"\b\w*(?:_NS|_ns|nanoseconds)\b\s*[:=][^=]", path.read_text())
        assert not found, (path, found)


def test_default_rates_price_every_kind():
    # Threads are woken on a CPU alone.
    of_threads = {"wake", "signal"}
    for name, without in (("cpu", set[str]()), ("h200", of_threads), ("test4", of_threads)):
        assert device(name).rates.keys() == RATES.keys() - without
        assert all(rate > 0 for rate in device(name).rates.values())


def test_a_sum_is_what_its_parts_are():
    assert Work().nanoseconds(CPU) == 0
