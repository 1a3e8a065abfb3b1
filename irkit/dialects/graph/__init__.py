"""The `graph` dialect: what a model means. Named ops on tensors, pure, one file per group."""

from xdsl.ir import Dialect

from irkit.dialects.graph import (
    convolution,
    elementwise,
    forest,
    linear,
    normalisation,
    pooling,
    recurrent,
    reduction,
    shape,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.convolution import ConvOp, ConvTransposeOp
from irkit.dialects.graph.elementwise import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    ClipOp,
    CompareOp,
    DivOp,
    ErfOp,
    ExpOp,
    FloorOp,
    IsNanOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    PowOp,
    ReluOp,
    SigmoidOp,
    SqrtOp,
    SubOp,
    TanhOp,
    WhereOp,
)
from irkit.dialects.graph.forest import ForestOp
from irkit.dialects.graph.linear import GemmOp, MatmulOp
from irkit.dialects.graph.normalisation import BatchNormOp, LrnOp, SoftmaxOp
from irkit.dialects.graph.pooling import (
    AveragePoolOp,
    GlobalAveragePoolOp,
    LpPoolOp,
    MaxPoolIndicesOp,
    MaxPoolOp,
)
from irkit.dialects.graph.recurrent import LstmCellOp, LstmOp
from irkit.dialects.graph.reduction import ArgmaxOp, CumSumOp, ReduceOp, TopKOp
from irkit.dialects.graph.shape import (
    ConcatOp,
    ExpandOp,
    GatherElementsOp,
    GatherOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)

Graph = Dialect(
    "graph",
    [
        op
        for group in (
            convolution,
            elementwise,
            forest,
            linear,
            normalisation,
            pooling,
            recurrent,
            reduction,
            shape,
        )
        for op in group.OPS
    ],
)

__all__ = [
    "AbsOp",
    "AddOp",
    "AndOp",
    "ArgmaxOp",
    "AveragePoolOp",
    "BatchNormOp",
    "CastOp",
    "ClipOp",
    "CompareOp",
    "ConcatOp",
    "ConvOp",
    "ConvTransposeOp",
    "CumSumOp",
    "DivOp",
    "ErfOp",
    "ExpOp",
    "ExpandOp",
    "FloorOp",
    "ForestOp",
    "GatherElementsOp",
    "GatherOp",
    "GemmOp",
    "GlobalAveragePoolOp",
    "Graph",
    "GraphOp",
    "IsNanOp",
    "LogOp",
    "LpPoolOp",
    "LrnOp",
    "LstmCellOp",
    "LstmOp",
    "MatmulOp",
    "MaxOp",
    "MaxPoolIndicesOp",
    "MaxPoolOp",
    "MinOp",
    "MulOp",
    "NegOp",
    "OrOp",
    "PowOp",
    "ReduceOp",
    "ReluOp",
    "ReshapeOp",
    "SigmoidOp",
    "SliceOp",
    "SoftmaxOp",
    "SqrtOp",
    "SubOp",
    "TanhOp",
    "TopKOp",
    "TransposeOp",
    "WhereOp",
]
