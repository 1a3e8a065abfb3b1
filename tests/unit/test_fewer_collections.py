"""Python's collector of cycles while irkit compiles."""

import gc
from collections.abc import Iterator

import pytest

from irkit.runtime.fewer_collections import OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_looks_seldom_and_then_as_before() -> None:
    gc.set_threshold(321, 4, 5)
    with fewer_collections():
        assert gc.get_threshold() == (OBJECTS, 4, 5)
    assert gc.get_threshold() == (321, 4, 5)
    # Two that end in the order in which they began, as two threads' do.
    outer, inner = fewer_collections(), fewer_collections()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert gc.get_threshold() == (OBJECTS, 4, 5)
    inner.__exit__(None, None, None)
    assert gc.get_threshold() == (321, 4, 5)


def test_it_is_put_back_where_compiling_fails() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), fewer_collections():
        raise KeyError
    assert gc.get_threshold() == before


@pytest.mark.parametrize("first", [0, 10 * OBJECTS])
def test_whoever_asks_for_less_has_it(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with fewer_collections():
        assert gc.get_threshold()[0] == first
