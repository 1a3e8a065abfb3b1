"""CatBoost's hash of a category; what it says of texts of all lengths is CatBoost's."""

from irkit.runtime.category_hash import category_hash, city_hash


def test_hashes_of_catboost() -> None:
    """Those of integers are in the code that CatBoost exports of a model."""
    for text, wanted in ((b"9", -1829579975), (b"19", -1757863955), (b"15", -1558977718)):
        assert category_hash(text) == wanted


def test_of_nothing_it_is_a_constant() -> None:
    assert city_hash(b"") == 0x9AE16A3B2F90404F


def test_every_byte_counts() -> None:
    for size in (1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 200):
        whole = bytes(range(size))
        changed = [whole[:n] + b"\xff" + whole[n + 1 :] for n in {0, size // 2, size - 1}]
        found = {city_hash(text) for text in (whole, *changed)}
        assert len(found) == 1 + len(changed)
        assert all(0 <= value < 1 << 64 for value in found)
