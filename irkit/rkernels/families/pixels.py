"""`pixels`: convolutions as products, filters side by side and outputs element by element."""

from __future__ import annotations

from irkit.dialects.planes import Plane, as_plane, plane_of
from irkit.dialects.products import PACKED_ROWS, as_packed_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import delinearised, linear
from irkit.rkernels.binding.groups import groups, part, store
from irkit.rkernels.binding.planes import fill, outputs
from irkit.rkernels.families.depthwise import pitch
from irkit.rkernels.families.planes import places
from irkit.rkernels.family import Family, of_floats


def pixel_plane(root: Root) -> Plane | None:
    """The planes of a convolution, its filters packed or not."""
    if "pixel planes" not in root.counted:
        root.counted["pixel planes"] = plane_of(as_packed_product(root)) or as_plane(root)
    return root.counted["pixel planes"]


def kept_elements(plane: Plane) -> int:
    """Elements of the planes of a group that are copied; none of planes that lie in memory already."""
    return 0 if _in_place(plane) else plane.elements


def _in_place(plane: Plane) -> bool:
    read, summed = (
        tensor_type(v).element_type for v in (plane.source, plane.product.op.results[0])
    )
    return plane.in_memory and read == summed


class Pixels(Family):
    """`PART`, `INIT`, `STORE`, pointer `A` and `M` as `product`; `FILL`, `ROW`, `WIDTH`, `PITCH` as
    `depthwise`; `PLACES`, `CHANNELS`, `STEP` and `TERMS` as `planes`.

    `PACKED`: whether A is packed; `FILTERS` is what packed filters are read from, `DEPTH` how many rows A has
    then. `KEPT`: elements of planes in scratch; where they are none, `SOURCE` is the input, and `START(b, l)`
    where the planes of a group begin in it.
    """

    name = "pixels"

    def refuses(self, root: Root) -> str | None:
        """Windows that move along planes, summed channel by channel."""
        plane = pixel_plane(root) if root.family == "conv" else None
        if plane is None:
            return "its root is no convolution over planes of an operand in memory"
        if plane.channels != plane.product.k[: len(plane.channels)]:
            return "its sums do not go channel by channel"
        return of_floats(root)

    def bind(self, binder: Binder) -> None:
        """Planes that do not lie in memory are the rKernel's scratch."""
        plane = pixel_plane(binder.root)
        if plane is None:
            raise UnsupportedError("it is no convolution over planes of an operand in memory")
        product = plane.product
        names = binder.binding.names
        names["A"] = f"p{product.in_place.index}"
        names["FILTERS"] = names["A"] if product.packed else "plane"
        rows = max(product.extent(product.m), 0)
        deep = -(-rows // PACKED_ROWS) * PACKED_ROWS if product.packed else rows
        for name, value in (
            ("M", rows), ("DEPTH", deep), ("PACKED", int(product.packed)), ("PITCH", pitch(plane)),
            ("CHANNELS", plane.channel_count), ("STEP", plane.channel_elements),
            ("TERMS", plane.channel_terms), ("KEPT", kept_elements(plane)),
        ):  # fmt: skip
            binder.literal(name, value)
        part(binder, product)
        store(binder, product)
        outputs(binder, plane)
        places(binder, plane)
        names["SOURCE"] = f"p{plane.source.index}" if _in_place(plane) else "plane"
        if not _in_place(plane):
            fill(binder, plane)
            binder.binding.function("START", "b, l", ["return 0"])
            return
        binder.binding.function("FILL", f"{binder.binding.operands}, b, l, plane", ["return"])
        binder.binding.function("START", "b, l", [f"return {_start(plane)}"])


def _start(plane: Plane) -> str:
    """Where the planes of group b, l begin in memory."""
    loops: dict[int, str] = {}
    for letter, dims in groups(plane.product).items():
        if letter in "bl":
            parts = delinearised(letter, plane.product.extents(dims))
            loops |= {d: f"({p})" for d, p in zip(dims, parts, strict=True)}
    index = [
        " + ".join(
            [str(v.offset), *(f"{loops[d]} * {n}" for d, n in v.factors.items() if d in loops)]
        )
        for v in plane.views
    ]
    return linear([f"({i})" for i in index], tensor_type(plane.source).get_shape())
