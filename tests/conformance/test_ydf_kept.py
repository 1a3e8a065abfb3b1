"""YDF models as its interface describes them, and its own answers that are kept: ydf need not be there."""

# pyright: basic

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import irkit
from irkit.context import IrkitContext
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from irkit.interp.graph import run_graph
from irkit.passes.graph.tree_to_gemm import TreeToGemm
from irkit.passes.graph.tree_to_perfect_traversal import TreeToPerfectTraversal
from irkit.passes.graph.tree_to_traversal import TreeToTraversal
from irkit.runtime.named_columns import named_rows_of
from tests.conformance.interpreted import interpreted, same
from tests.conformance.ydf_models import FOLDER, kept, stand_in

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# What goes through exp or pow: NumPy's are others than the C library's, by at most two units.
CURVED = ("binary", "focal", "isolated", "poisson", "softmax")
COMPILED = ("asked", "isolated", "oblique", "softmax")


def agree(program: Any, name: str, rows: Any, wanted: Any, exact: bool = False) -> None:
    rtol = 0.0 if exact or name not in CURVED else 4e-7
    for part in (slice(None), slice(3), slice(5, 6), slice(0)):
        given = {column: values[part] for column, values in rows.items()}
        for found in (program.predict(given), program.predict(pd.DataFrame(given))):
            same(found, wanted[part], rtol)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_ydfs_answers(name: str) -> None:
    document, rows, wanted = kept(name)
    agree(interpreted(stand_in(document)), name, rows, wanted)


def test_every_kind_of_model_is_kept() -> None:
    assert len(NAMES) == 16
    assert {*CURVED, *COMPILED} <= {*NAMES}


@pytest.mark.parametrize("name", COMPILED)
def test_a_model_is_compiled_saved_and_loaded(tmp_path: Path, name: str) -> None:
    """To the last bit: exp and pow are the C library's, as in YDF."""
    document, rows, wanted = kept(name)
    program = irkit.compile(stand_in(document), "cpu", mode="serial", cache=False)
    agree(program, name, rows, wanted, exact=True)
    program.save(tmp_path / "model.irkit")
    agree(irkit.load(tmp_path / "model.irkit"), name, rows, wanted, exact=True)


@pytest.mark.parametrize("name", ["asked", "deep", "oblique"])
@pytest.mark.parametrize("strategy", [TreeToGemm, TreeToPerfectTraversal, TreeToTraversal])
def test_every_strategy_has_the_same_bits(name: str, strategy: Any) -> None:
    document, rows, wanted = kept(name)
    imported = import_model(stand_in(document))
    ctx = IrkitContext(weights=imported.weights)
    strategy().apply(ctx, imported.module)
    numbers = named_rows_of(imported.info, rows)
    (found,) = run_graph(imported.module, imported.weights, [numbers])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["asked", "oblique"])
def test_programs_for_a_gpu_are_built(tmp_path: Path, name: str) -> None:
    program = irkit.compile(stand_in(kept(name)[0]), device="h200", cache=False)
    assert program.report()["device"] == "h200"
    program.save(tmp_path / "model.irkit")
    assert (tmp_path / "model.irkit").stat().st_size > 0


# Rows


def test_rows_of_numbers_have_categories_by_their_numbers() -> None:
    document, rows, wanted = kept("binary")
    model = stand_in(document)
    program = interpreted(model)
    info = import_model(model).info
    numbers = named_rows_of(info, rows)
    assert numbers.dtype == np.float32
    same(program.predict(numbers), program.predict(rows))
    same(program.predict(numbers.astype(np.float64)), wanted, 4e-7)
    # What is no category's number is in no dictionary.
    town = info.columns.index("town")
    strange, unknown = numbers.copy(), numbers.copy()
    unknown[:, town] = 0
    for value in (-1.0, -np.inf, np.inf, 1e9, 6.0):
        strange[:, town] = value
        same(program.predict(strange), program.predict(unknown))
    with pytest.raises(InvalidInputError, match="expected shape rowsx7, got 10x6"):
        program.predict(numbers[:10, 1:])


def test_columns_go_by_their_names() -> None:
    document, rows, _ = kept("binary")
    program = interpreted(stand_in(document))
    want = program.predict(rows)
    frame = pd.DataFrame(rows)
    same(program.predict(frame[[*frame.columns[::-1]]].assign(more="x")), want)
    same(program.predict({**dict(reversed(rows.items())), 7: None}), want)
    same(program.predict({n: v.tolist() for n, v in rows.items()}), want)
    same(program(rows), want)
    same(program.run([frame])[0], want)
    assert program.takes_strings
    with pytest.raises(UnsupportedError, match="sparse matrices"):
        program.predict(sparse.csr_matrix((3, 7)))
    with pytest.raises(InvalidInputError, match="expected dtype float32, float64, got object"):
        program.predict(frame.to_numpy())
    with pytest.raises(InvalidInputError, match=r"lack columns 'town', 'word'; it has 'a', "):
        program.predict(frame.drop(columns=["town", "word"]))
    with pytest.raises(InvalidInputError, match="several columns of one name"):
        program.predict(pd.concat([frame, frame["a"]], axis=1))
    with pytest.raises(InvalidInputError, match=r"disagree on the number of rows: \[3, "):
        program.predict({**rows, "a": np.zeros(3)})


@pytest.mark.parametrize(
    "missing", [None, "", float("nan"), np.nan, pd.NA, np.float64("nan"), b"", "\0"]
)
def test_no_word_is_a_missing_one(missing: Any) -> None:
    document, rows, _ = kept("asked")
    program = interpreted(stand_in(document))
    town = np.full(len(rows["town"]), "", object)
    want = program.predict({**rows, "town": town})
    town[:] = [missing] * len(town)
    same(program.predict({**rows, "town": town}), want)
    same(program.predict(pd.DataFrame({**rows, "town": town})), want)


@pytest.mark.parametrize(
    "words",
    [
        np.array(["true"]), np.array([True]), [True], np.array([b"true"]), np.array(["true"], object),
        ["true"], ("true",), [np.str_("true")], np.array(["true\0"], object), [b"true"],
        pd.Series(["true"]), pd.Series(pd.Categorical(["true"])), pd.Series([True], dtype="boolean"),
    ],
)  # fmt: skip
def test_spellings_of_a_word(words: Any) -> None:
    info = import_model(stand_in(kept("binary")[0])).info
    town = info.columns.index("town")
    rows = {n: v[:1] for n, v in kept("binary")[1].items()}
    number = info.semantics[town][2].index("true")
    assert named_rows_of(info, {**rows, "town": words})[0, town] == number
    assert named_rows_of(info, {**rows, "town": [17]})[0, town] == 0


def test_a_column_of_columns_is_several() -> None:
    document, rows, _ = kept("forest")
    for number, feature in enumerate(document["features"][:2]):
        feature[0] = document["columns"][feature[2]]["name"] = f"pair.{number}_of_2"
    program = interpreted(stand_in(document))
    pair = np.stack([rows.pop("a"), rows.pop("b")], axis=1)
    want = program.predict({**rows, "pair.0_of_2": pair[:, 0], "pair.1_of_2": pair[:, 1]})
    same(want, kept("forest")[2])
    same(program.predict({**rows, "pair": pair}), want)
    with pytest.raises(InvalidInputError, match=r"lack columns 'pair.0_of_2', 'pair.1_of_2'"):
        program.predict({**rows, "pair": pair[:, [0, 1, 1]]})


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("a", ["x"], "column 'a': expected numbers: could not convert"),
        ("a", np.array([1j]), "column 'a': expected numbers, got dtype complex128"),
        ("a", np.array(["2020-01-01"], "M8[D]"), "column 'a': expected numbers, got dtype datetime"),
        ("a", [[1.0]], r"column 'a': expected one dimension, got shape \(1, 1\)"),
        ("a", [[1.0], [1.0, 2.0]], "column 'a' is no array"),
        ("a", [10**400], "column 'a': expected numbers"),
        ("town", [1.5], "column 'town': expected strings or integers as categories, got dtype float"),
        ("town", np.array([1.5], object), "column 'town': float is neither a string nor an integer"),
        ("town", np.array([{}], object), "column 'town': dict is neither|unhashable"),
        ("index", [1.0], "column 'index': expected integers, got dtype float64"),
        ("index", [-2], "column 'index' has category -2: expected 0 to 5, or -1 for a missing one"),
        ("index", [6], "column 'index' has category 6: expected 0 to 5"),
        ("index", np.array([2**32 + 1]), "column 'index' has category 4294967297"),
        ("flag", [1], "column 'flag': expected True and False, got dtype int64"),
        ("flag", [None], "column 'flag': expected True and False, got dtype object"),
    ],
)  # fmt: skip
def test_columns_that_hold_something_else(column: str, values: Any, message: str) -> None:
    document, rows, _ = kept("binary")
    program = interpreted(stand_in(document))
    with pytest.raises(InvalidInputError, match=message):
        program.predict({**{n: v[:1] for n, v in rows.items()}, column: values})


def test_numbers_are_rounded_to_float32() -> None:
    info = import_model(stand_in(kept("forest")[0])).info
    rows = {n: v[:1] for n, v in kept("forest")[1].items()}
    for values, want in (
        ([1e300], np.inf), ([None], np.nan), (["1.5"], 1.5), ([True], 1.0), ([2**24 + 1], 2.0**24),
        (np.array([0.1]), np.float32(0.1)), (np.array([pd.NA], object), np.nan),
    ):  # fmt: skip
        np.testing.assert_array_equal(named_rows_of(info, {**rows, "a": values})[0, 0], want)
