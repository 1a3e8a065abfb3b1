"""`FETCH`: elements of B, in two steps (docs/emission.md).

One step is for an element's column and one for its k, which a thread takes as seldom as it changes
either: each gives numbers that `FETCH` adds up. The load itself has no branch: outside of a padded
operand the first element is read. `INSIDE` tells later, when the element is needed, that it is zero; a
test at the load would wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects.linalg_generic import maps
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import Product, Window, windows
from irkit.dialects.types import tensor_type
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, strides
from irkit.rkernels.binding.groups import groups


def fetch(b: Binder, product: Product) -> None:
    """`COLUMN`, `STEP`, `FETCH` and `INSIDE`."""
    found = windows(product)
    if found is None:
        _computed(b, product)
    else:
        source, dims = found
        _in_memory(b, product, f"p{source.index}", dims, strides(tensor_type(source).get_shape()))


def split_position(name: str, sizes: Sequence[int], lines: list[str]) -> list[str]:
    """Names of the row-major index that `name` counts through; 32 bits are enough."""
    names = [""] * len(sizes)
    rest, used = name, 0
    for d in range(len(sizes) - 1, 0, -1):
        if sizes[d] == 1:
            names[d] = "0"
            continue
        lines.append(f"{name}q{used}, {name}r{used} = divide32({rest}, {sizes[d]})")
        names[d], rest = f"{name}r{used}", f"{name}q{used}"
        used += 1
    if names:
        names[0] = rest
    return names


def loop_names(product: Product, letters: str, lines: list[str]) -> dict[int, str]:
    """Names of the loops of some groups, `k` being the reduction's."""
    found: dict[int, str] = {}
    for letter, dims in {**groups(product), "k": product.k}.items():
        if letter in letters:
            found |= dict(
                zip(dims, split_position(letter, product.extents(dims), lines), strict=True)
            )
    return found


def weighted_sum(names: dict[int, str], factors: dict[int, int], offset: int = 0) -> str:
    """The sum of names times factors, and an offset, in 32 bits."""
    text = f"int32({offset})"
    for d, name in names.items():
        if factors.get(d) and name != "0":
            text = f"mad32({name}, {factors[d]}, {text})"
    return text


def _in_memory(
    b: Binder, product: Product, pointer: str, dims: Sequence[Window], steps: Sequence[int]
) -> None:
    """B lies in memory: an address and, for dimensions that are padded, where in them it is."""
    guarded = [w for w in dims if w.guarded]
    address: dict[int, int] = {}
    for window, step in zip(dims, steps, strict=True):
        for loop, factor in window.factors.items():
            address[loop] = address.get(loop, 0) + factor * step
    offset = sum(w.offset * step for w, step in zip(dims, steps, strict=True))
    for placeholder, arguments, letters in (("COLUMN", "b, l, c", "blc"), ("STEP", "k", "k")):
        lines: list[str] = []
        names = loop_names(product, letters, lines)
        first = placeholder == "COLUMN"
        parts = [weighted_sum(names, address, offset * first)]
        parts += [weighted_sum(names, w.factors, w.offset * first) for w in guarded]
        lines.append(f"return ({', '.join(parts)},)")
        b.binding.function(placeholder, arguments, lines)
    tests = [
        f"within32(add32(column[{i}], step[{i}]), {window.size})"
        for i, window in enumerate(guarded, 1)
    ]
    inside = " & ".join(tests) or "True"
    b.binding.function("INSIDE", "column, step", [f"return {inside}"])
    where = "at if inside else 0" if guarded else "at"
    lines = [f"inside = {inside}", "at = add32(column[0], step[0])"]
    b.binding.function("AT", "column, step", [*lines, f"return {where}"])
    lines.append(f"return {pointer}[{where}]")
    b.binding.function("FETCH", f"{b.binding.operands}, column, step", lines)
    run = run_of_b(product)
    b.binding.names["B"] = pointer
    b.literal("BY_K", int(run is not None and run.by_k))
    b.literal("FOURS_B", int(run is not None and run.fours))


def _computed(b: Binder, product: Product) -> None:
    """B is an expression of operands: its loops are numbered once, its elements computed."""
    names: dict[int, str] = {}
    for placeholder, arguments, letters, given in (
        ("COLUMN", "b, l, c", "blc", "column"),
        ("STEP", "k", "k", "step"),
    ):
        lines: list[str] = []
        found = loop_names(product, letters, lines)
        integers = ", ".join(f"int64({name})" for name in found.values())
        lines.append(f"return ({integers},)")
        b.binding.function(placeholder, arguments, lines)
        names |= {d: f"{given}{i}" for i, d in enumerate(found)}
    printer = ElementPrinter()
    for given in ("column", "step"):
        taken = [n for n in names.values() if n.startswith(given)]
        for i, name in enumerate(taken):
            printer.line(f"{name} = {given}[{i}]")
    loops = tuple(names.get(d, "0") for d in range(len(product.sizes)))
    index = tuple(printer.affine(e, loops) for e in maps(product.op)[product.b].results)
    element = printer.element(product.op.inputs[product.b], index)
    printer.line(f"return {element}")
    b.binding.function("INSIDE", "column, step", ["return True"])
    b.binding.function("FETCH", f"{b.binding.operands}, column, step", printer.lines)
