"""`FILL`: the input of one group of a convolution into planes, padding resolved, by phases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from irkit.dialects.planes import Axis, Plane
from irkit.dialects.products import padding_of
from irkit.dialects.types import tensor_type
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import delinearised, strides
from irkit.rkernels.binding.groups import groups


def fill(binder: Binder, plane: Plane) -> None:
    """`FILL(OPERANDS, b, l, plane)`: all elements of the planes that group b, l looks at."""
    filler = _Filler(plane, padding_of(plane.product))
    for letter, dims in groups(plane.product).items():
        if letter in "bl":
            parts = delinearised(letter, plane.product.extents(dims))
            filler.names |= {d: f"({p})" for d, p in zip(dims, parts, strict=True)}
    filler.print()
    binder.binding.function("FILL", f"{binder.binding.operands}, b, l, plane", filler.lines)


def outputs(binder: Binder, plane: Plane) -> None:
    """`ROW(y)`, `WIDTH` and `PLANE`: where the outputs of row y begin, how many they are, and how many
    elements all planes have."""
    columns = plane.product.columns
    binder.literal("WIDTH", plane.product.sizes[columns[-1]])
    binder.literal("PLANE", plane.elements)
    rows = delinearised("y", plane.product.extents(columns[:-1]))
    places = [f"({y}) * {s}" for y, s in zip(rows, plane.strides[:-1], strict=True)]
    binder.binding.function("ROW", "y", [f"return {' + '.join(places) or '0'}"])


@dataclass
class _Filler:
    """Prints loops over channels, then over rows of the plane; a row goes phase by phase. Whole rows, one
    behind another, are one."""

    plane: Plane
    padding: int
    names: dict[int, str] = field(default_factory=dict[int, str])
    lines: list[str] = field(default_factory=list[str])
    depth: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def print(self) -> None:
        plane = self.plane
        memory = strides(tensor_type(plane.source).get_shape())
        place = ["0"]
        for d in plane.channels:
            self.line(f"for k{d} in range({plane.product.sizes[d]}):")
            self.depth += 1
            self.names[d] = f"k{d}"
            place.append(f"k{d} * {plane.channel_step(d)}")
        base = self._still(memory)
        *outer, inner = plane.axes
        if plane.whole_axes > 1:
            outer = list(plane.axes[: len(plane.axes) - plane.whole_axes])
            inner = replace(inner, size=plane.run, extent=plane.run)
        inside: list[str] = []
        for number, axis in enumerate(outer):
            self.line(f"for y{number} in range({axis.extent}):")
            self.depth += 1
            place.append(f"y{number} % {axis.stride} * {plane.phase_step(number)}")
            place.append(f"y{number} // {axis.stride} * {plane.strides[number]}")
            base.append(f"(y{number} + {axis.origin}) * {memory[axis.dimension]}")
            inside.append(f"0 <= y{number} + {axis.origin} < {axis.size}")
        self.line(f"row = {' + '.join(place)}")
        self.line(f"base = {' + '.join(base)}")
        self.line(f"inside = {' and '.join(inside) or 'True'}")
        for phase in range(inner.stride):
            self._phase(inner, phase, memory[inner.dimension])
        self.depth = 0
        self.line("return")

    def _still(self, memory: list[int]) -> list[str]:
        """Terms of an address that dimensions without an axis add."""
        moved = {axis.dimension for axis in self.plane.axes}
        found: list[str] = []
        for d, view in enumerate(self.plane.views):
            if d in moved:
                continue
            parts = [f"{self.names[loop]} * {step}" for loop, step in view.factors.items()]
            found.append(f"({' + '.join([*parts, str(view.offset)])}) * {memory[d]}")
        return found or ["0"]

    def _phase(self, axis: Axis, phase: int, step: int) -> None:
        """Elements `phase`, `phase + stride`, ... of a row of the plane."""
        # Element t of the phase is the input's at t * stride + start.
        start = phase + axis.origin
        first = min(max(-(start // axis.stride), 0), axis.phase)
        last = max(min((axis.size - 1 - start) // axis.stride + 1, axis.phase), first)
        at = f"row + {phase * self.plane.phase_step(len(self.plane.axes) - 1)} + t"
        pointer = f"p{self.plane.source.index}"
        self.line("if inside:")
        self.depth += 1
        self._zeros(at, 0, first)
        if last - first > 1 and self._in_vectors(axis, step):
            place = f"row + {phase * self.plane.phase_step(len(self.plane.axes) - 1) + first}"
            where = f"base + {first * axis.stride + start}"
            count = last - first
            widest = min(1 << count.bit_length() - 1, 16)
            copied = f"{axis.stride}, {widest}, {count}, {pointer}, {where}, plane, {place}"
            self.line(f"copy_every({copied})")
        else:
            self.line(f"for t in range({first}, {last}):")
            where = f"base + (t * {axis.stride} + {start}) * {step}"
            self.line(f"    plane[{at}] = {pointer}[{where}]")
        self._zeros(at, last, axis.phase)
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        self._zeros(at, 0, axis.phase)
        self.depth -= 1

    def _in_vectors(self, axis: Axis, step: int) -> bool:
        """Whether a phase's elements lie so that vectors of them can be loaded, as the plane holds them."""
        read, kept = (
            tensor_type(v).element_type
            for v in (self.plane.source, self.plane.product.op.results[0])
        )
        return step == 1 and axis.stride in (1, 2) and read == kept

    def _zeros(self, at: str, begin: int, end: int) -> None:
        self.line(f"for t in range({begin}, {end}):")
        self.line(f"    plane[{at}] = {self.padding}")
