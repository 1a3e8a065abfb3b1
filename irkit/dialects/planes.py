"""A convolution whose filters see few channels each, as a depthwise one: sums over padded planes of the input.

A plane is kept by phases: with a stride of S, elements p of the same p modulo S lie side by side. So
neighbouring outputs read neighbouring elements, whatever the stride.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import BlockArgument

from irkit.dialects.products import Product, Window, as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type


@dataclass(frozen=True)
class Axis:
    """A dimension of the input along which the windows of one loop over columns move.

    Element `p` of the plane is the input's at `p + origin`, or zero outside of [0, `size`); `extent` elements
    are looked at, by windows that move by `stride`. `steps`: how far each loop over k goes; `shifts`: how far
    the windows of each group lie behind those of the first, by loops over groups. `gap`: elements behind each
    phase that nothing looks at.
    """

    dimension: int
    column: int
    stride: int
    steps: dict[int, int]
    origin: int
    size: int
    extent: int
    gap: int = 0
    shifts: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def phase(self) -> int:
        """Elements of a phase."""
        return -(-self.extent // self.stride) + self.gap


@dataclass(frozen=True)
class Plane:
    """What the outputs of one group of a convolution look at: `axes` of each of the `channels`.

    `axes` are in the order of the loops over columns. `channels` are the loops over k that move no axis;
    `source` is the input, `views` how it is indexed.
    """

    product: Product
    source: BlockArgument
    views: tuple[Window, ...]
    axes: tuple[Axis, ...]
    channels: tuple[int, ...]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbouring outputs are along each axis."""
        extents = [axis.phase for axis in self.axes]
        return tuple(math.prod(extents[n + 1 :]) for n in range(len(extents)))

    @cached_property
    def phase_elements(self) -> int:
        """Elements of one phase of all axes."""
        return math.prod(axis.phase for axis in self.axes)

    @cached_property
    def channel_elements(self) -> int:
        """Elements of one channel: all its phases."""
        return self.phase_elements * math.prod(axis.stride for axis in self.axes)

    @cached_property
    def elements(self) -> int:
        """Elements of all channels."""
        return self.channel_elements * self.channel_count

    @cached_property
    def channel_count(self) -> int:
        """How many channels there are."""
        return math.prod(self.product.extents(self.channels))

    @cached_property
    def channel_terms(self) -> int:
        """Terms of a sum that one channel has."""
        return self.product.extent(self.product.k) // self.channel_count

    @property
    def whole_axes(self) -> int:
        """How many of the last axes are looked at whole, in the order of memory: they are one run of elements."""
        last = len(self.views) - 1
        found = 0
        for axis in reversed(self.axes):
            whole = axis.stride == 1 and axis.origin == 0 and axis.extent == axis.size
            if not whole or axis.dimension != last - found:
                break
            found += 1
        return found

    @property
    def in_memory(self) -> bool:
        """Whether the planes of a group are what lies in memory."""
        sizes, steps = tensor_type(self.source).get_shape(), dict[int, int]()
        for d, view in enumerate(self.views):
            for loop, step in view.factors.items():
                steps[loop] = steps.get(loop, 0) + step * math.prod(sizes[d + 1 :])
        channels = all(steps[loop] == self.channel_step(loop) for loop in self.channels)
        return self.whole_axes == len(self.axes) and channels

    @property
    def run(self) -> int:
        """Elements of the planes that are side by side in memory too."""
        phases = [axis.phase for axis in self.axes]
        return math.prod(phases[-max(self.whole_axes, 1) :])

    @property
    def shifts(self) -> dict[int, int]:
        """How far each loop over groups moves what is looked at, in elements."""
        found = dict[int, int]()
        for axis, stride in zip(self.axes, self.strides, strict=True):
            for loop, step in axis.shifts.items():
                found[loop] = found.get(loop, 0) + step * stride
        return found

    def channel_step(self, loop: int) -> int:
        """How far one step of a loop over channels goes."""
        behind = self.channels[self.channels.index(loop) + 1 :]
        return self.channel_elements * math.prod(self.product.extents(behind))

    def phase_step(self, axis: int) -> int:
        """How far it is to the next phase of an axis."""
        return self.phase_elements * math.prod(a.stride for a in self.axes[axis + 1 :])

    def terms(self) -> Iterator[int]:
        """Where the terms of the first output are, in the order of k."""
        ranges = [range(size) for size in self.product.extents(self.product.k)]
        for point in itertools.product(*ranges):
            yield self.place(dict(zip(self.product.k, point, strict=True)))

    def place(self, loops: dict[int, int]) -> int:
        """Where the term of the first output is whose loops over k are at these points, others at 0."""
        place = sum(loops.get(d, 0) * self.channel_step(d) for d in self.channels)
        for number, (axis, stride) in enumerate(zip(self.axes, self.strides, strict=True)):
            along = sum(loops.get(d, 0) * step for d, step in axis.steps.items())
            place += along % axis.stride * self.phase_step(number) + along // axis.stride * stride
        return place


def as_plane(root: Root, shifted: bool = False) -> Plane | None:
    """`root` as sums over planes; None if its input is computed, or its windows move otherwise.

    With `shifted`, groups may look at other places of the same planes, as the phases of a transposed
    convolution do.
    """
    name = "shifted planes" if shifted else "planes"
    if name not in root.counted:
        root.counted[name] = plane_of(as_product(root), shifted)
    return root.counted[name]


def plane_of(product: Product | None, shifted: bool = False) -> Plane | None:
    """The same of a product."""
    found = windows(product) if product is not None else None
    if product is None or found is None or DYNAMIC in product.extents(product.columns):
        return None
    source, views = found
    groups = product.batch if shifted else ()
    axes = [_axis(product, column, views, groups) for column in product.columns]
    kept = tuple(axis for axis in axes if axis is not None)
    moving = [loop for axis in kept for loop in (axis.column, *axis.steps)]
    still = [v for d, v in enumerate(views) if d not in {a.dimension for a in kept}]
    loops = {loop for view in still for loop in view.factors}
    channels = tuple(d for d in product.k if d not in moving)
    # Each loop moves one dimension.
    alone = len(moving) == len(set(moving)) and not loops & set(moving) and set(channels) <= loops
    if len(kept) < len(axes) or not alone or any(view.guarded for view in still):
        return None
    return Plane(product, source, tuple(views), kept, channels)


def _axis(
    product: Product, column: int, views: list[Window], groups: Collection[int]
) -> Axis | None:
    """The one dimension that a loop over columns moves, forward, with none but loops over k and `groups`."""
    moved = [(d, view) for d, view in enumerate(views) if column in view.factors]
    if len(moved) != 1:
        return None
    ((dimension, view),) = moved
    shifts = {loop: step for loop, step in view.factors.items() if loop in groups}
    stride = view.factors[column]
    steps = {
        loop: step for loop, step in view.factors.items() if loop != column and loop not in shifts
    }
    if not set(steps) <= set(product.k) or min(view.factors.values()) < 1:
        return None
    if shifts and (stride > 1 or any(product.sizes[d] == DYNAMIC for d in shifts)):
        return None
    extent = 1 + sum(step * (product.sizes[d] - 1) for d, step in view.factors.items())
    return Axis(dimension, column, stride, steps, view.offset, view.size, extent, shifts=shifts)
