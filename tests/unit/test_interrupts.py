"""What a block starts is known before Ctrl-C or SIGTERM interrupts it."""

import os
import signal
import threading

import pytest

from nexmark.interrupts import interrupts_held_back, terminated_as_interrupt

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@BOTH
def test_an_interrupt_comes_when_it_is_let_through(number: signal.Signals) -> None:
    steps = []
    with (
        terminated_as_interrupt(),
        pytest.raises(KeyboardInterrupt),
        interrupts_held_back() as let_through,
    ):
        os.kill(os.getpid(), number)
        steps.append("started")
        let_through()
        steps.append("went on")
    assert steps == ["started"]


@BOTH
def test_an_interrupt_comes_at_the_end_of_the_block_at_the_latest(number: signal.Signals) -> None:
    steps = []
    with terminated_as_interrupt(), pytest.raises(KeyboardInterrupt), interrupts_held_back():
        os.kill(os.getpid(), number)
        steps.append("went on")
    assert steps == ["went on"]


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    earlier = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held_back() as let_through:
            os.kill(os.getpid(), signal.SIGINT)
            let_through()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, earlier)


def test_a_thread_can_use_it() -> None:
    steps = []

    def work() -> None:
        with interrupts_held_back() as let_through:
            let_through()
            steps.append("went on")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert steps == ["went on"]
