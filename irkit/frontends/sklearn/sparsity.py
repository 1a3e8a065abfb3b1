"""Which values of a pipeline scikit-learn hands on as sparse matrices, and what these do not store.

To most steps a 0 that is not stored is a 0. To XGBoost it is missing, and a 0 that is stored is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.columns import SELECTORS
from irkit.frontends.sklearn.forms import Form

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from irkit.frontends.sklearn.importer import Importer


_TO_DENSE = (
    "BernoulliRBM", "Birch", "BisectingKMeans", "FactorAnalysis", "GaussianRandomProjection",
    "IncrementalPCA", "Isomap", "KMeans", "KernelPCA", "MiniBatchKMeans", "NMF", "Nystroem", "PCA",
    "PolynomialCountSketch", "RBFSampler", "StackingRegressor", "TruncatedSVD", "VotingRegressor",
)  # fmt: skip
"""Steps that make dense rows of sparse ones."""
_KEEPING = (
    *SELECTORS,
    "MaxAbsScaler",
    "Normalizer",
    "RobustScaler",
    "StandardScaler",
)
"""Steps that change of a sparse matrix what is stored, to no 0 where there was none."""
_ENCODERS = ("OneHotEncoder", "RandomTreesEmbedding")
_NEVER = ("CountVectorizer", "TfidfTransformer", "TfidfVectorizer")
_MAYBE = ("KNeighborsTransformer", "RadiusNeighborsTransformer")


def form_after(kind: str, step: Any, given: Form) -> Form:
    """What a fitted transformer makes of a value that is `given`."""
    if kind in _NEVER:
        # Of dense rows TfidfTransformer makes sparse ones, too.
        return Form.ZERO_FREE if given is Form.DENSE else given
    if kind == "HashingVectorizer":
        # Words of one column and opposite signs leave a 0.
        return Form.UNCLEAR if step.alternate_sign else Form.ZERO_FREE
    if kind in _ENCODERS:
        return Form.ZERO_FREE if step.sparse_output else Form.DENSE
    if kind == "KBinsDiscretizer":
        return Form.ZERO_FREE if step.encode == "onehot" else Form.DENSE
    if kind in _MAYBE or getattr(step, "sparse_output", False) is True:
        return Form.UNCLEAR
    if kind == "MissingIndicator" and step.sparse is True:
        return Form.UNCLEAR
    if kind == "ColumnTransformer" and not step.sparse_output_:
        return Form.DENSE
    if given is Form.DENSE or kind in _TO_DENSE:
        return Form.DENSE
    if kind == "Binarizer":
        return Form.ZERO_FREE
    return given if kind in _KEEPING else Form.UNCLEAR


def why_not_stored(kind: str, step: Any, given: Form) -> str:
    """Why a step would make something else of a sparse matrix than of the same dense rows; empty if not."""
    if kind == "QuantileTransformer":
        return "of a sparse matrix, of which it leaves what is not stored at 0"
    logarithms = kind == "AdditiveChi2Sampler" or getattr(step, "sublinear_tf", False)
    if logarithms and given is Form.UNCLEAR:
        return "behind steps of which a sparse matrix may store a 0, whose logarithm it would take"
    return ""


def absent_as_missing(importer: Importer, x: SSAValue) -> SSAValue:
    """x as XGBoost sees it. Raises UnsupportedError where it is not known which zeros are stored."""
    form = importer.forms.get(x, Form.DENSE)
    if form is Form.UNCLEAR:
        raise UnsupportedError(
            "XGBoost behind steps of which a sparse matrix may store a 0, which is not missing to it"
        )
    if form is Form.DENSE:
        return x
    zero = importer.compare(x, "eq", [0.0], "absent")
    return importer.where(zero, x, [float("nan")], "missing")
