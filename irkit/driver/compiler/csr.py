"""A model of dense rows as one of the rows of a CSR matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr

from irkit.context import IrkitContext
from irkit.dialects.graph import ForestOp
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.csr_rows import MadeDense

if TYPE_CHECKING:
    from irkit.driver.compiler.batch import SizedModel
    from irkit.frontends.module import ImportedModel

PASSES = "canonicalize,cse,dce,rows-to-csr,dce"
DENSE = "rows-to-csr{dense=true}"


def why_dense(imported: ImportedModel) -> str:
    """Why rows of a CSR matrix are made dense for a model; empty where it has to be tried."""
    if any(isinstance(op, ForestOp) for op in imported.module.walk()):
        return "trees look at any column of a row"
    return ""


def csr_model(imported: ImportedModel, on_gpu: bool = False) -> ImportedModel:
    """The model by what its rows have stored; `imported` stays as it is.

    A model that reads its rows otherwise raises UnsupportedError, naming the op; `on_gpu` it makes them dense
    itself, so that what is copied there is what is stored.
    """
    if not on_gpu:
        return _of_stored(imported)
    try:
        return _of_stored(imported)
    except UnsupportedError:
        if not imported.info.absent:
            raise
    return _converted(imported, DENSE)


def of_sparse_rows(
    found: ImportedModel | SizedModel,
    dense: Callable[[], ImportedModel | SizedModel],
    on_gpu: bool,
) -> ImportedModel | SizedModel:
    """`found`, read for sparse rows, by what these have stored; else as it is, for rows that the
    host makes dense.

    Raises MadeDense where that is what the model is for `dense` rows, too.
    """
    from irkit.frontends.module import ImportedModel

    if not isinstance(found, ImportedModel):
        return found
    try:
        return csr_model(found, on_gpu)
    except UnsupportedError as error:
        other = dense()
        # Weights have names by what they are.
        if isinstance(other, ImportedModel) and str(other.module) == str(found.module):
            raise MadeDense(str(error)) from None
        return found


def _of_stored(imported: ImportedModel) -> ImportedModel:
    if imported.info.absent != "zero":
        raise UnsupportedError("it takes no sparse rows of which what is absent is 0")
    if reason := why_dense(imported):
        raise UnsupportedError(reason)
    return _converted(imported, PASSES)


def _converted(imported: ImportedModel, pipeline: str) -> ImportedModel:
    from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel

    module = imported.module.clone()
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    with library_errors():
        passes = build_pipeline(pipeline, all_passes())
        PipelineRunner(ctx, verify=Verify.LEVELS).run(module, passes)
    facts = module.attributes[MODEL_ATTRIBUTE]
    assert isinstance(facts, StringAttr)
    return ImportedModel(module, imported.weights, ModelInfo.from_json(facts.data))
