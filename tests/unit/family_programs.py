"""Small programs with a root of every family, and their rOperators with operands."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.types import DYNAMIC
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.task import evaluate_body
from irkit.interp.tensor import evaluate_op

ROWS = 5
FOREST = """
  %feature = arith.constant dense<[[1, 0, 3], [2, 1, 0]]> : tensor<2x3xi32>
  %threshold = arith.constant dense<[[0.0, -0.5, 0.5], [0.1, 0.2, -0.3]]> : tensor<2x3xf32>
  %nan_left = arith.constant dense<[[true, false, false], [false, true, false]]> : tensor<2x3xi1>
  %value = arith.constant dense<[[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]]]> :
    tensor<2x4x1xf64>
  %output = arith.constant dense<[0, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25, -1.0]> : tensor<2xf64>
  %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base
    {comparison = "le", depth = 2 : i64} : (tensor<?x4xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xi1>,
    tensor<2x4x1xf64>, tensor<2xi32>, tensor<2xf64>) -> tensor<?x2xf64>
"""
HEAP = """
  %nodes = arith.constant dense<[[[0, 0], [-2147483647, 0], [0, -1090519040], [3, 1056964608]],
    [[0, 0], [2, 1036831949], [-2147483647, 1045220557], [0, -1097229926]]]> : tensor<2x4x2xi32>
  %value = arith.constant dense<[[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]]]> :
    tensor<2x4x1xf64>
  %output = arith.constant dense<[0, 1]> : tensor<2xi32>
  %base = arith.constant dense<[0.25, -1.0]> : tensor<2xf64>
  %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 2 : i64} :
    (tensor<?x4xf32>, tensor<2x4x2xi32>, tensor<2x4x1xf64>, tensor<2xi32>, tensor<2xf64>) -> tensor<?x2xf64>
"""
LINKED = """
  %feature = arith.constant dense<[3, 1, 0, 0, 0, 0]> : tensor<6xi32>
  %threshold = arith.constant dense<[0.5, -0.5, 0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
  %left = arith.constant dense<[1, 2, 2, 3, 4, 5]> : tensor<6xi32>
  %right = arith.constant dense<[4, 3, 2, 3, 4, 5]> : tensor<6xi32>
  %nan_left = arith.constant dense<[true, false, false, false, false, false]> : tensor<6xi1>
  %value = arith.constant dense<[[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 5]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base
    {comparison = "le", depth = 2 : i64, strategy = "auto"} : (tensor<?x4xf32>, tensor<6xi32>, tensor<6xf32>,
    tensor<6xi32>, tensor<6xi32>, tensor<6xi1>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>)
    -> tensor<?x1xf64>
"""
PACKED = """
  %nodes = arith.constant dense<[[1056964608, 0, 3, 2], [2143289344, 0, 0, 0],
    [-1090519040, 0, -2147483647, 4], [2143289344, 0, 0, 2], [2143289344, 0, 0, 3],
    [2143289344, 0, 0, 4]]> : tensor<6x4xi32>
  %value = arith.constant dense<[[0.0], [4.0], [0.0], [3.0], [1.0], [2.0]]> : tensor<6x1xf64>
  %root = arith.constant dense<[0, 1]> : tensor<2xi32>
  %output = arith.constant dense<[0, 0]> : tensor<2xi32>
  %base = arith.constant dense<[0.25]> : tensor<1xf64>
  %y = te.packed_forest %x, %nodes, %value, %root, %output, %base {comparison = "le", depth = 2 : i64} :
    (tensor<?x4xf32>, tensor<6x4xi32>, tensor<6x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<1xf64>)
    -> tensor<?x1xf64>
"""


def function(inputs: str, body: str, result: str) -> str:
    return f"func.func @main({inputs}) -> {result} {{\n{body}\n  return %y : {result}\n}}"


def contraction(kind: str, maps: str, iterators: str, a: str, b: str, c: str) -> str:
    """A generic that adds up products, of floats or of integers."""
    letter = "i" if kind.startswith("i") else "f"
    return f"""
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins(%x, %w : tensor<{a}x{kind}>, tensor<{b}x{kind}>) outs(%c : tensor<{c}x{kind}>) {{
  ^bb0(%p: {kind}, %q: {kind}, %o: {kind}):
    %m = arith.mul{letter} %p, %q : {kind}
    %s = arith.add{letter} %o, %m : {kind}
    linalg.yield %s : {kind}
  }} -> tensor<{c}x{kind}>"""


def gemm(rows: str, k: int, columns: int, kind: str = "f32", by_k: bool = False) -> str:
    a, b, c = f"{rows}x{k}", f"{columns}x{k}" if by_k else f"{k}x{columns}", f"{rows}x{columns}"
    second = "(j, k)" if by_k else "(k, j)"
    maps = ", ".join(f"affine_map<(i, j, k) -> {m}>" for m in ("(i, k)", second, "(i, j)"))
    loops = '"parallel", "parallel", "reduction"'
    inputs = f"%x: tensor<{a}x{kind}>, %w: tensor<{b}x{kind}>, %c: tensor<{c}x{kind}>"
    return function(inputs, contraction(kind, maps, loops, a, b, c), f"tensor<{c}x{kind}>")


def gates() -> str:
    """Two gates of a unit, of a product with something added, and what is made of them."""
    halves = "\n".join(
        f"  %{name} = graph.slice %s {{offsets = array<i64: 0, {first}>, sizes = array<i64: 17, 10>, "
        f"strides = array<i64: 1, 1>}} : (tensor<17x20xf32>) -> tensor<17x10xf32>"
        for name, first in (("i", 0), ("g", 10))
    )
    kind = "{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64}"
    body = f"""  %p = graph.gemm %h, %r {kind} :
    (tensor<17x12xf32>, tensor<20x12xf32>) -> tensor<17x20xf32>
  %s = graph.add %x, %p : (tensor<17x20xf32>, tensor<17x20xf32>) -> tensor<17x20xf32>
{halves}
  %t = graph.tanh %g : (tensor<17x10xf32>) -> tensor<17x10xf32>
  %y = graph.mul %i, %t : (tensor<17x10xf32>, tensor<17x10xf32>) -> tensor<17x10xf32>"""
    inputs = "%h: tensor<17x12xf32>, %r: tensor<20x12xf32>, %x: tensor<17x20xf32>"
    return function(inputs, body, "tensor<17x10xf32>")


def batched() -> str:
    maps = ", ".join(
        f"affine_map<(b, i, j, k) -> {m}>" for m in ("(b, i, k)", "(b, k, j)", "(b, i, j)")
    )
    loops = '"parallel", "parallel", "parallel", "reduction"'
    inputs = "%x: tensor<3x6x9xf32>, %w: tensor<3x9x5xf32>, %c: tensor<3x6x5xf32>"
    body = contraction("f32", maps, loops, "3x6x9", "3x9x5", "3x6x5")
    return function(inputs, body, "tensor<3x6x5xf32>")


def of_bytes(x: str, w: str, y: str, product: str, before: str = "") -> str:
    """A product in i32 of unsigned bytes, of %p and of shape `x`, and signed ones."""
    wide = "\n".join(
        f"  %{v}0 = graph.cast %{v} {{to = i32}} : (tensor<{t}>) -> tensor<{t.rpartition('x')[0]}xi32>"
        for v, t in (("p", f"{x}xui8"), ("w", f"{w}xi8"))
    )
    name, _, attributes = product.partition(" ")
    types = f"(tensor<{x}xi32>, tensor<{w}xi32>) -> tensor<{y}xi32>"
    return f"{before}{wide}\n  %y = {name} %p0, %w0 {attributes} : {types}"


def unary(name: str, t: str, result: str = "", attributes: str = "") -> str:
    result = result or t
    return function(f"%x: {t}", f"  %y = {name} %x {attributes} : ({t}) -> {result}", result)


def reduced(kind: str, t: str, result: str) -> str:
    attributes = f'{{kind = "{kind}", axes = array<i64: 1>, keepdims = false}}'
    return unary("graph.reduce", f"tensor<{t}>", f"tensor<{result}>", attributes)


def stored(kind: str, op: str, attributes: str, more: str, columns: int) -> str:
    """An op on five rows of a CSR matrix of nine elements, with two operands beside its steps."""
    names = "%d, %i, %s, %e" + (", %w" if more else "") + ", %c, %r"
    types = f"tensor<1x9x{kind}>, tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>{more}"
    types += f", tensor<4x{kind}>, tensor<5x1x{kind}>"
    inputs = ", ".join(map(": ".join, zip(names.split(", "), types.split(", "), strict=True)))
    result = f"tensor<5x{columns}x{kind}>"
    body = f"  %y = te.{op} {names} {attributes} : ({types}) -> {result}"
    return function(inputs, body, result)


CONV = (
    "{strides = array<i64: 1, 2>, pads = array<i64: 1, 0, 0, 1>, dilations = array<i64: 1, 1>, "
    "group = 1 : i64}"
)
POOL = (
    "{kernel_shape = array<i64: 2, 3>, strides = array<i64: 1, 2>, pads = array<i64: 0, 1, 1, 0>, "
    "dilations = array<i64: 1, 1>, ceil_mode = false}"
)
FILTERS = "tensor<1x3x6x7xf32>, tensor<5x3x3x2xf32>"
ROWWISE = """  %y = te.rowwise %x, %s, %c [{places}] {{
  ^bb0(%0: {e}, %1: {e}, %2: {e}):
    %3 = te.row_reduce %0 {{kind = "max"}} : {e}
    %4 = arith.subf %0, %3 : {e}
    %5 = math.exp %4 : {e}
    %6 = te.row_reduce %5 {{kind = "add"}} : {e}
    %7 = te.row_reduce %0 {{kind = "min"}} : {e}
    %8 = arith.divf %5, %6 : {e}
    %9 = arith.mulf %8, %2 : {e}
    %10 = arith.addf %9, %1 : {e}
    %11 = arith.addf %10, %7 : {e}
    te.yield %11 : {e}
  }} : ({types}) -> {y}
"""
ROW_SUMS = """  %y = te.rowwise %x, %s [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> {at}>] {{
  ^bb0(%0: {e}, %1: {e}):
    %2 = te.row_reduce %0 {{kind = "add"}} : {e}
    %3 = arith.subf %0, %2 : {e}
    %4 = arith.mulf %3, %3 : {e}
    %5 = te.row_reduce %4 {{kind = "add"}} : {e}
    %6 = arith.divf %5, %1 : {e}
    te.yield %6 : {e}
  }} : ({x}, {s}) -> {s}
"""
PROGRAMS = {
    "map": unary("graph.tanh", "tensor<3x4x5xf32>"),
    "map of rows": unary("graph.neg", "tensor<?x6xf64>"),
    "map of a batch": unary("graph.neg", "tensor<?xf64>"),
    "scalar": unary("graph.neg", "tensor<f32>"),
    "transposed": unary(
        "graph.transpose", "tensor<2x3x4xi32>", "tensor<4x2x3xi32>", "{permutation = array<i64: 2, 0, 1>}"
    ),
    "sum": reduced("sum", "6x70xf32", "6xf32"),
    "long sum": reduced("sum", "3x1100xf32", "3xf32"),
    "max of integers": reduced("max", "4x5x6xi32", "4x6xi32"),
    "softmax": unary("graph.softmax", "tensor<4x7xf32>", attributes="{axis = 1 : i64}"),
    "softmax of rows": unary("graph.softmax", "tensor<?x9xf32>", attributes="{axis = 1 : i64}"),
    "layer norm": unary(
        "graph.layer_norm", "tensor<4x70xf32>", attributes="{epsilon = 1.0e-5 : f64, centred = true}"
    ),
    "layer norm of rows": unary(
        "graph.layer_norm", "tensor<?x9xf64>", attributes="{epsilon = 0.0 : f64, centred = false}"
    ),
    "rows": function(
        "%x: tensor<3x4x70xf32>, %s: tensor<4xf32>, %c: tensor<70xf32>",
        ROWWISE.format(
            places="affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>, "
            "affine_map<(d0, d1, d2) -> (d2)>",
            types="tensor<3x4x70xf32>, tensor<4xf32>, tensor<70xf32>", e="f32", y="tensor<3x4x70xf32>",
        ),
        "tensor<3x4x70xf32>",
    ),
    "rows of a batch": function(
        "%x: tensor<?x8xf64>, %s: tensor<?x1xf64>, %c: tensor<8xf64>",
        ROWWISE.format(
            places="affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, "
            "affine_map<(d0, d1) -> (d1)>",
            types="tensor<?x8xf64>, tensor<?x1xf64>, tensor<8xf64>", e="f64", y="tensor<?x8xf64>",
        ),
        "tensor<?x8xf64>",
    ),
    "narrow rows of a batch": function(
        "%x: tensor<?x4xf64>, %s: tensor<?x1xf64>, %c: tensor<4xf64>",
        ROWWISE.format(
            places="affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, "
            "affine_map<(d0, d1) -> (d1)>",
            types="tensor<?x4xf64>, tensor<?x1xf64>, tensor<4xf64>", e="f64", y="tensor<?x4xf64>",
        ),
        "tensor<?x4xf64>",
    ),
    "sums of rows": function(
        "%x: tensor<5x300xf32>, %s: tensor<5xf32>",
        ROW_SUMS.format(x="tensor<5x300xf32>", s="tensor<5xf32>", e="f32", at="(d0)"),
        "tensor<5xf32>",
    ),
    "sums of rows of a batch": function(
        "%x: tensor<?x9xf64>, %s: tensor<?xf64>",
        ROW_SUMS.format(x="tensor<?x9xf64>", s="tensor<?xf64>", e="f64", at="(d0)"),
        "tensor<?xf64>",
    ),
    "sums of narrow rows of a batch": function(
        "%x: tensor<?x3xf64>, %s: tensor<?xf64>",
        ROW_SUMS.format(x="tensor<?x3xf64>", s="tensor<?xf64>", e="f64", at="(d0)"),
        "tensor<?xf64>",
    ),
    "attention": function(
        "%q: tensor<2x7x5xf32>, %k: tensor<2x9x5xf32>, %v: tensor<2x9x3xf32>, %m: tensor<7x9xf32>",
        "  %y = te.attention %q, %k, %v, %m {scale = 0.5 : f64, causal = 1 : i64, permutation = array<i64: "
        "1, 0, 2>} : (tensor<2x7x5xf32>, tensor<2x9x5xf32>, tensor<2x9x3xf32>, tensor<7x9xf32>) "
        "-> tensor<7x2x3xf32>",
        "tensor<7x2x3xf32>",
    ),
    "attention in fours": function(
        "%q: tensor<2x17x20xf32>, %k: tensor<2x9x20xf32>, %v: tensor<2x9x4xf32>",
        "  %y = te.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<2x17x20xf32>, tensor<2x9x20xf32>, "
        "tensor<2x9x4xf32>) -> tensor<2x17x4xf32>",
        "tensor<2x17x4xf32>",
    ),
    "attention query gradient": function(
        "%q: tensor<2x7x5xf32>, %k: tensor<1x41x5xf32>, %v: tensor<2x41x3xf32>, %c: tensor<2x7x3xf32>, "
        "%m: tensor<7x41xf32>",
        "  %y = te.attention_query_gradient %q, %k, %v, %c, %m {scale = 0.5 : f64, causal = 1 : i64} : "
        "(tensor<2x7x5xf32>, tensor<1x41x5xf32>, tensor<2x41x3xf32>, tensor<2x7x3xf32>, tensor<7x41xf32>) "
        "-> tensor<2x7x7xf32>",
        "tensor<2x7x7xf32>",
    ),
    "attention key gradient": function(
        "%q: tensor<2x41x5xf32>, %k: tensor<1x7x5xf32>, %v: tensor<2x7x35xf32>, %c: tensor<2x41x35xf32>, "
        "%s: tensor<2x41x7xf32>",
        "  %y = te.attention_key_gradient %q, %k, %v, %c, %s {scale = 0.5 : f64, causal = -1 : i64} : "
        "(tensor<2x41x5xf32>, tensor<1x7x5xf32>, tensor<2x7x35xf32>, tensor<2x41x35xf32>, "
        "tensor<2x41x7xf32>) -> tensor<2x7x40xf32>",
        "tensor<2x7x40xf32>",
    ),
    "attention of rows": function(
        "%q: tensor<?x7x5xf32>, %k: tensor<1x40x5xf32>, %v: tensor<?x40x18xf32>",
        "  %y = te.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<?x7x5xf32>, tensor<1x40x5xf32>, "
        "tensor<?x40x18xf32>) -> tensor<?x7x18xf32>",
        "tensor<?x7x18xf32>",
    ),
    "csr": stored("f32", "csr_matmul", '{steps = ["mul x a0", "div s0 a1"]}', ", tensor<4x37xf32>", 37),
    "csr of one column": stored(
        "f64", "csr_matmul", '{steps = ["mul x a0", "sub s0 a1"]}', ", tensor<4x1xf64>", 1
    ),
    "csr sums": stored(
        "f32", "csr_reduce", '{kind = "sum", initial = 2.5 : f64, steps = ["mul x a0", "mul s0 a1"]}', "", 1
    ),
    "csr maxima": stored(
        "f64", "csr_reduce",
        '{kind = "max", initial = -0.5 : f64, steps = ["mul x a0", "abs s0", "sub s1 a1"]}', "", 1,
    ),
    # Of what a row had twice, either might be taken.
    "csr dense": function(
        "%d: tensor<1x9xf32>",
        "  %i = arith.constant dense<[[0, 3, 69, 12, 5, 3, 40, 1, 0]]> : tensor<1x9xi32>\n"
        "  %s = arith.constant dense<[0, 2, 2, 6, -3]> : tensor<5xi64>\n"
        "  %e = arith.constant dense<[2, 2, 6, 30, 1]> : tensor<5xi64>\n"
        "  %y = te.csr_dense %d, %i, %s, %e {columns = 70 : i64, initial = 2.5 : f64} : (tensor<1x9xf32>, "
        "tensor<1x9xi32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x70xf32>",
        "tensor<5x70xf32>",
    ),
    "gemvt": function(
        "%a: tensor<37x21xf64>, %x: tensor<21xf64>, %r: tensor<37xf64>",
        "  %y = te.gemvt %a, %x, %r {parts = 3 : i64} "
        ": (tensor<37x21xf64>, tensor<21xf64>, tensor<37xf64>) -> tensor<3x34xf64>",
        "tensor<3x34xf64>",
    ),
    "gemvt of itself": function(
        "%a: tensor<37x21xf32>, %x: tensor<21xf32>",
        "  %y = te.gemvt %a, %x {parts = 2 : i64} "
        ": (tensor<37x21xf32>, tensor<21xf32>) -> tensor<2x40xf32>",
        "tensor<2x40xf32>",
    ),
    "nibbles": function(
        "%x: tensor<5x10xf32>, %q: tensor<2x5x64xui8>, %s: tensor<2x3x64xf32>, %z: tensor<2x3x64xf32>",
        "  %y = te.nibble_matmul %x, %q, %s, %z {block = 4 : i64, columns = 100 : i64} "
        ": (tensor<5x10xf32>, tensor<2x5x64xui8>, tensor<2x3x64xf32>, tensor<2x3x64xf32>) "
        "-> tensor<5x100xf32>",
        "tensor<5x100xf32>",
    ),
    "nibbles of a row": function(
        "%x: tensor<1x8xf32>, %q: tensor<3x4x64xui8>, %s: tensor<3x1x64xf32>",
        "  %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 192 : i64} "
        ": (tensor<1x8xf32>, tensor<3x4x64xui8>, tensor<3x1x64xf32>) -> tensor<1x192xf32>",
        "tensor<1x192xf32>",
    ),
    "argmax": unary("te.argmax", "tensor<3x5x8xf32>", "tensor<3x5xi64>"),
    "top k": unary("te.top_k", "tensor<3x5x8xf32>", "tensor<3x5x3xi64>", "{k = 3 : i64, largest = true}"),
    "top k of rows": unary("te.top_k", "tensor<?x9xi8>", "tensor<?x9xi64>", "{k = 9 : i64, largest = true}"),
    "scatter add": function(
        "%x: tensor<9x5xf32>, %i: tensor<2x40xi64>, %u: tensor<2x40x5xf32>",
        "  %y = graph.scatter_add %x, %i, %u : (tensor<9x5xf32>, tensor<2x40xi64>, tensor<2x40x5xf32>) "
        "-> tensor<9x5xf32>",
        "tensor<9x5xf32>",
    ),
    "scatter add of wide rows": function(
        "%x: tensor<20x1030xf64>, %i: tensor<3xi32>, %u: tensor<3x1030xf64>",
        "  %y = graph.scatter_add %x, %i, %u : (tensor<20x1030xf64>, tensor<3xi32>, tensor<3x1030xf64>) "
        "-> tensor<20x1030xf64>",
        "tensor<20x1030xf64>",
    ),
    "argmax of bytes": unary("te.argmax", "tensor<4x40xi8>", "tensor<4xi64>"),
    "least of bytes": reduced("min", "3x200xui8", "3xui8"),
    "max of words": reduced("max", "2x90xui64", "2xui64"),
    "max of 16 bits": reduced("max", "4x70xi16", "4xi16"),
    "gates": gates(),
    "gemm": gemm("9", 12, 10),
    "gemm of many columns": gemm("9", 3, 4099),
    "gemm of 64 bits": gemm("6", 5, 20, "f64"),
    "gemm by k": gemm("8", 12, 10, by_k=True),
    "gemm of rows": gemm("?", 7, 6),
    "gemm of integers": gemm("5", 6, 7, "i32"),
    "bytes": function(
        "%p: tensor<3x32xui8>, %w: tensor<12x32xi8>",
        of_bytes("3x32", "12x32", "3x12", "graph.gemm {trans_a = false, trans_b = true, "
                 "alpha = 1.0 : f64, beta = 1.0 : f64}"),
        "tensor<3x12xi32>",
    ),
    "columns of bytes": function(
        "%p: tensor<9x7xui8>, %w: tensor<7x12xi8>",
        of_bytes("9x7", "7x12", "9x12", "graph.matmul"),
        "tensor<9x12xi32>",
    ),
    "windows of bytes": function(
        "%x: tensor<1x3x6x7xui8>, %w: tensor<5x3x3x2xi8>",
        of_bytes("1x3x7x8", "5x3x3x2", "1x5x5x4", f"graph.conv {CONV}".replace("1, 0, 0, 1", "0, 0, 0, 0"),
                 "  %p = graph.pad %x {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 1>, "
                 "value = 3.0 : f64} : (tensor<1x3x6x7xui8>) -> tensor<1x3x7x8xui8>\n"),
        "tensor<1x5x5x4xi32>",
    ),
    "gemv": gemm("1", 40, 12, by_k=True),
    "batched gemm": batched(),
    "heads": function(
        "%x: tensor<3x4x6x9xf32>, %w: tensor<3x4x9x5xf32>",
        "  %y = graph.matmul %x, %w : (tensor<3x4x6x9xf32>, tensor<3x4x9x5xf32>) -> tensor<3x4x6x5xf32>",
        "tensor<3x4x6x5xf32>",
    ),
    "conv": function(
        "%x: tensor<1x3x6x7xf32>, %w: tensor<5x3x3x2xf32>",
        f"  %y = graph.conv %x, %w {CONV} : ({FILTERS}) -> tensor<1x5x5x4xf32>",
        "tensor<1x5x5x4xf32>",
    ),
    "pool": function(
        "%x: tensor<1x2x5x6xf32>",
        f"  %y = graph.max_pool %x {POOL} : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x3xf32>",
        "tensor<1x2x5x3xf32>",
    ),
    "perfect forest": function("%x: tensor<?x4xf32>", FOREST, "tensor<?x2xf64>"),
    "symmetric forest": function(
        "%x: tensor<?x4xf32>",
        FOREST.replace("{comparison", "{symmetric, comparison")
        .replace("[[1, 0, 3], [2, 1, 0]]", "[[1, 3, 3], [2, 1, 1]]")
        .replace("[[0.0, -0.5, 0.5], [0.1, 0.2, -0.3]]", "[[0.0, 0.5, 0.5], [0.1, -0.3, -0.3]]")
        .replace("[false, true, false]]", "[false, true, true]]"), "tensor<?x2xf64>",
    ),
    "heap forest": function("%x: tensor<?x4xf32>", HEAP, "tensor<?x2xf64>"),
    "forest": function("%x: tensor<?x4xf32>", LINKED, "tensor<?x1xf64>"),
    "packed forest": function("%x: tensor<?x4xf32>", PACKED, "tensor<?x1xf64>"),
    "ordered forest": function(
        "%x: tensor<?x4xf32>", LINKED.replace("{comparison", "{leaves = 3 : i64, comparison"),
        "tensor<?x1xf64>",
    ),
}  # fmt: skip


@dataclasses.dataclass
class Case:
    """An rOperator and the operands of one of its launches; its module is kept alive."""

    op: ROperatorOp
    arrays: list[Any]
    want: list[Any]
    module: Any


def arrays_of(main: FuncOp, rng: np.random.Generator) -> list[Any]:
    found: list[Any] = []
    for argument in main.body.block.args:
        shape = [ROWS if s == DYNAMIC else s for s in argument.type.get_shape()]
        element = str(argument.type.element_type)
        if element in ("i8", "ui8"):
            limits = np.iinfo("int8" if element == "i8" else "uint8")
            found.append(rng.integers(limits.min, limits.max + 1, shape).astype(limits.dtype))
        elif element == "ui64":
            # Some are below 0 as a signed integer has their bits.
            found.append(rng.integers(0, 1 << 64, shape, np.uint64))
        elif element.startswith("i"):
            found.append(rng.integers(-9, 10, shape).astype(f"int{element[1:]}"))
        else:
            found.append(rng.standard_normal(shape).astype(f"float{element[1:]}"))
    return found


def read(name: str) -> tuple[Any, IrkitContext]:
    if name == "lstm":
        from benchmarks.models import lstm_stack
        from irkit.frontends import import_model

        imported = import_model(lstm_stack(1, 8, 6, 2))
        ctx = IrkitContext(weights=imported.weights)
        register_dialects(ctx)
        return imported.module, ctx
    ctx = IrkitContext()
    register_dialects(ctx)
    return irkit.parse(PROGRAMS[name]), ctx


def choose_first(module: Any) -> dict[str, ROperatorOp]:
    """Every rOperator as the first of its alternatives, the fastest alone; by symbol."""
    found = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
    for op in found.values():
        if op.alternatives is not None:
            op.choose(op.alternatives.data[0])
    return found


def cases(name: str, device: str) -> list[Case]:
    """The rOperators of a program, partitioned for a device, each the fastest alone."""
    module, ctx = read(name)
    for level in (
        ("graph", "tensor", "task") if name == "lstm" or "graph." in str(module) else ("task",)
    ):
        run_level(ctx, module, level, device)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    known = choose_first(module)
    env = dict(zip(main.body.block.args, arrays_of(main, np.random.default_rng(1)), strict=True))
    found: dict[str, Case] = {}
    for op in main.body.block.ops:
        operands = [env[v] for v in op.operands]
        if op.name == "func.return":
            break
        if isinstance(op, LaunchOp):
            symbol = op.callee.string_value()
            values = evaluate_body(known[symbol], operands, ctx.weights)
            found.setdefault(symbol, Case(known[symbol], operands, values, module))
        else:
            values = evaluate_op(op, operands, ctx.weights)
        env.update(zip(op.results, values, strict=True))
    return list(found.values())


ON_GPUS_ALONE = ["gates", "heap forest"]
NAMES = [*(name for name in PROGRAMS if name not in ON_GPUS_ALONE), "lstm"]
ON_CPUS_ALONE = ["gemvt", "gemvt of itself", "nibbles", "nibbles of a row"]
NAMES_FOR = {
    "test4": NAMES,
    "h200": [*(name for name in NAMES if name not in ON_CPUS_ALONE), *ON_GPUS_ALONE],
}
