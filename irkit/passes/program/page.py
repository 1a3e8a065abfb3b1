"""`page`: regions of a program whose arrays are larger than the device's memory, in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.context import weights_of
from irkit.errors import UnsupportedError
from irkit.passes.program.paging.paged import page_module
from irkit.remarks import applied

BUFFERS = 3
"""Chunks that are on the device at a time: one that comes, one that is computed, one that goes."""


@dataclass(frozen=True)
class Page(ModulePass):
    """Run regions whose arrays do not fit the device in chunks that do.

    A call of a region whose arrays have more than `bytes` bytes (and which is not said to run on the CPU)
    becomes a loop over chunks: rows of its arrays are copied to the device, the region's function of so many
    rows computes rows of results, which are copied back. `buffers` chunks have memory of their own on the
    device and take turns, so that copies in, computing and copies out may overlap. Rows that neighbours need
    (windows of stencils) are copied with both. What is reduced over all rows is merged chunk by chunk: exact
    for integers, maxima and minima, within rounding for sums and products of floats, whose order is that of
    the chunks. What hangs on a reduction and on rows takes one more sweep. What is left of the rows is a
    chunk of its own, of a function of that size. All device memory that is asked for is at most `bytes`.

    A program without regions is taken as one. Arrays that the program writes, and of which other chunks still
    need what was there, are written last. `values` lets `@main` return what its arguments hold in the end,
    and write none. What cannot be computed in chunks is refused: the op is named, and why. Exact but for
    merged sums and products of floats.

    ```mlir
    func.call @main_region0(%x, %y) : (memref<4096xf64>, memref<4096xf64>) -> ()
    ```
    becomes, with bytes=24576 and buffers=2,
    ```mlir
    scf.for %i = %c0 to %c8 step %c2 {
      %0 = affine.apply affine_map<(d0) -> (d0 * 512)>(%i)
      %1 = memref.reinterpret_cast %x to offset: [%0], sizes: [512], strides: [1]
      memref.copy %1, %a
      func.call @main_region0_chunk(%a, %b)
      %2 = memref.reinterpret_cast %y to offset: [%0], sizes: [512], strides: [1]
      memref.copy %b, %2
      ...
    }
    ```
    """

    name = "page"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    produces: ClassVar[str] = "program"
    bytes: int
    buffers: int = BUFFERS
    values: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.buffers < 1:
            raise UnsupportedError(f"buffers = {self.buffers}: there is 1 or more")
        for sweep in page_module(op, weights_of(ctx), self.bytes, self.buffers, self.values):
            applied(op, "Page", "{} in {} chunks", sweep.region, str(sweep.chunks))
