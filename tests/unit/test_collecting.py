"""The garbage collector is as it was, once something is compiled."""

import gc

import pytest

from irkit.driver.pipelines.collecting import seldom_collected


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_thresholds_come_back():
    gc.set_threshold(700, 11, 12)
    with seldom_collected():
        assert gc.get_threshold() == (100_000, 20, 50)
        with seldom_collected():
            assert gc.get_threshold() == (100_000, 20, 50)
        assert gc.get_threshold() == (100_000, 20, 50)
    assert gc.get_threshold() == (700, 11, 12)


def test_thresholds_come_back_after_an_error():
    gc.set_threshold(700, 11, 12)
    with pytest.raises(KeyError), seldom_collected():
        raise KeyError
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("young", [0, 200_000])
def test_who_collects_less_is_left_alone(young):
    gc.set_threshold(young, 11, 12)
    with seldom_collected():
        assert gc.get_threshold() == (young, 11, 12)
    assert gc.get_threshold() == (young, 11, 12)
