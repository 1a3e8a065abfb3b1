"""`byte_planes`: `planes` of bytes in sums of 32 bits."""

from __future__ import annotations

from irkit.dialects.planes import as_plane
from irkit.dialects.products import of_bytes
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.planes import fill, outputs
from irkit.rkernels.families.integer_product import byte_factors
from irkit.rkernels.families.planes import PlaneProduct, places


class BytePlanes(PlaneProduct):
    """`PART`, `INIT`, `STORE`, pointer `A`, `M`, `K`, and `OF_SIGNED`, `TURNED` and `BYTES` as of
    `integer_product`; `FILL`, `ROW`, `WIDTH` and `PLANE` as of `depthwise`; `CHANNELS`, `TERMS`, `STEP` and
    `PLACES` as of `planes`."""

    name = "byte_planes"

    def refuses(self, root: Root) -> str | None:
        """Windows that move along planes of bytes, summed channel by channel."""
        plane = as_plane(root) if root.family == "conv" else None
        if plane is None:
            return "its root is no convolution over planes of an operand in memory"
        if plane.channels != plane.product.k[: len(plane.channels)]:
            return "its sums do not go channel by channel"
        return None if of_bytes(plane.product) else "its factors are not bytes, with sums of i32"

    def bind(self, binder: Binder) -> None:
        """Planes are the rKernel's scratch."""
        plane = as_plane(binder.root)
        if plane is None:
            raise UnsupportedError("it is no convolution over planes of an operand in memory")
        product = plane.product
        binder.binding.names["A"] = f"p{product.in_place.index}"
        for name, value in (
            ("M", max(product.extent(product.m), 0)), ("K", product.extent(product.k)),
            ("CHANNELS", plane.channel_count), ("STEP", plane.channel_elements),
            ("TERMS", plane.channel_terms),
        ):  # fmt: skip
            binder.literal(name, value)
        part(binder, product)
        byte_factors(binder, product)
        store(binder, product)
        fill(binder, plane)
        outputs(binder, plane)
        places(binder, plane)
