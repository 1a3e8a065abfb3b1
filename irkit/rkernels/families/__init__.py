"""The families of rKernels, as one table."""

from __future__ import annotations

from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.families.argmax import Argmax
from irkit.rkernels.families.attention import Attention
from irkit.rkernels.families.attention_gradient import AttentionGradient
from irkit.rkernels.families.block_product import BlockProduct
from irkit.rkernels.families.byte_planes import BytePlanes
from irkit.rkernels.families.csr import CsrRows
from irkit.rkernels.families.depthwise import Depthwise
from irkit.rkernels.families.elementwise import Elementwise
from irkit.rkernels.families.forest import Forest
from irkit.rkernels.families.gate_product import GateProduct
from irkit.rkernels.families.gemm import Gemm
from irkit.rkernels.families.gemvt import Gemvt
from irkit.rkernels.families.generated import Generated
from irkit.rkernels.families.integer_product import IntegerProduct
from irkit.rkernels.families.layer_norm import LayerNorm
from irkit.rkernels.families.nibble_product import NibbleProduct
from irkit.rkernels.families.pack import Pack
from irkit.rkernels.families.panel_product import PanelProduct
from irkit.rkernels.families.pixels import Pixels
from irkit.rkernels.families.planes import PlaneProduct
from irkit.rkernels.families.product import MatrixProduct
from irkit.rkernels.families.reduction import Pool, Reduction
from irkit.rkernels.families.row_terms import CellRows, Gemv, RecurrentCell
from irkit.rkernels.families.rowwise import RowSums, Rowwise
from irkit.rkernels.families.scatter_add import ScatterAdd
from irkit.rkernels.families.softmax import Softmax
from irkit.rkernels.families.top_k import TopK
from irkit.rkernels.family import Family

# A contraction is also a reduction: the more special families come first.
_FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Elementwise(),
        Softmax(),
        LayerNorm(),
        Gemvt(),
        NibbleProduct(),
        Argmax(),
        TopK(),
        Rowwise(),
        RowSums(),
        ScatterAdd(),
        Attention(),
        AttentionGradient(),
        Pack(),
        CsrRows("csr"),
        CsrRows("csr_dense"),
        CsrRows("csr_reduce"),
        Forest("forest"),
        Forest("heap_forest"),
        Forest("packed_forest"),
        Forest("perfect_forest"),
        RecurrentCell(),
        CellRows(),
        GateProduct(),
        Gemm(),
        MatrixProduct(),
        IntegerProduct(),
        PanelProduct(),
        BlockProduct(),
        PlaneProduct(),
        BytePlanes(),
        Pixels(),
        Depthwise(),
        Gemv(),
        Reduction("conv", ("conv", "gemm")),
        Reduction("reduce", ("reduce", "pool", "conv", "gemm")),
        Pool("pool", ("pool",)),
        Generated(),
    )
}


def register(family: Family) -> Family:
    """Add a family; the newest of a name wins."""
    _FAMILIES[family.name] = family
    return family


def find(name: str) -> Family:
    """The family called `name`. Raises UnsupportedError if there is none."""
    if name not in _FAMILIES:
        raise UnsupportedError(f"family '{name}'; there are {', '.join(sorted(_FAMILIES))}")
    return _FAMILIES[name]


def families_for(root: Root) -> list[Family]:
    """Families that can see `root` their way, the one that is called as it is first."""
    found = [f for f in _FAMILIES.values() if f.refuses(root) is None]
    return sorted(found, key=lambda f: f.name != root.family)
