"""Layer normalisation."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.layer_norm_base import LayerNormBase


@irdl_op_definition
class LayerNormOp(LayerNormBase, GraphOp):
    """Each row along the last dimension by its own statistics: d / sqrt(mean(d²) + epsilon).

    d is x - mean(x) if `centred` (layer normalisation: J. L. Ba, J. R. Kiros and G. E. Hinton,
    arXiv:1607.06450), else x itself (root mean square normalisation: B. Zhang and R. Sennrich,
    arXiv:1910.07467). Scale and bias are ops of their own.

    The mean is known before the squares are summed, so a row far from zero loses nothing but what its mean does.
    Both sums have no fixed order, and d may be multiplied by the reciprocal of the root. A row with a NaN is
    all NaN, and so is a centred one with an infinity.

    ```mlir
    %y = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true}
      : (tensor<?x128x256xf32>) -> tensor<?x128x256xf32>
    ```
    """

    name = "graph.layer_norm"


OPS: list[type[GraphOp]] = [LayerNormOp]
