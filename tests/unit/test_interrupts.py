"""Interrupts that wait until Numba and LLVM are done."""

import os
import signal
import sys
import threading

import pytest

from irkit.runtime.interrupts import interrupts_held

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_at_the_end():
    steps = []

    def interrupted():
        with interrupts_held():
            interrupt()
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_within_two_comes_once():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts_held():
            with interrupts_held():
                interrupt()
                interrupt()
            assert seen == []
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_goes_through_and_the_handler_is_back():
    with pytest.raises(ValueError, match="within"), interrupts_held():
        raise ValueError("within")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_change_nothing():
    handlers = []

    def work():
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, before)
