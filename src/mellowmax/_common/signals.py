"""Ctrl-C and SIGTERM: a command ends within two seconds, at any moment, with one sentence.

Python itself would hear of a signal only when its main thread comes back from what it does, and
that may be compiling a program for many seconds, or importing a module that takes the
`KeyboardInterrupt` for a mistake of its own. So signals wake a thread that does nothing else. A
command that is able to end early, with what it has, is given a little more than a second for that.
Where it is not, or takes longer, or at the second signal, the thread ends the process. It does so
without Python's own shutdown, which is not safe while other threads compute.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator

from .sudden_end import before_sudden_end, sudden_end
from .terminal import columns, wrapped
from .text import visible

__all__ = ["early_end", "exit_code", "say_stopped", "unwatch_signals", "watch_signals"]

GRACE = 1.25
"""Seconds in which a command may end by itself."""
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class _State:
    """What is known of the signals of this process."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came."""
        self.stop: threading.Event | None = None
        """The event that tells a command to end early; None where no command can."""
        self.remark = ""
        """What is on disk, if the process has to be ended."""
        self.unsaid = threading.Lock()
        """Held by the thread that says the sentence, which is said once."""
        self.ends: tuple[socket.socket, socket.socket] | None = None


_state = _State()


def watch_signals() -> None:
    """From now on a signal ends this process as above; one that is ignored stays so."""
    if _state.ends is not None:
        return
    _state.ends = theirs, ours = socket.socketpair()
    ours.setblocking(False)
    signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    for number in NAMES:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    before_sudden_end(lambda: say_stopped(_state.remark))
    threading.Thread(target=_wait, args=(theirs,), name="signals", daemon=True).start()


def unwatch_signals() -> None:
    """All is done: a signal during Python's shutdown, which forgets our handlers, is too late."""
    for number in NAMES:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def early_end(remark: str) -> Iterator[threading.Event]:
    """An event that a signal sets: within, the command must end early then, with what it has.

    Args:
        remark: what is on disk if it takes too long for that.
    """
    before = _state.stop, _state.remark
    stop = _state.stop = threading.Event()
    _state.remark = remark
    try:
        yield stop
    finally:
        _state.stop, _state.remark = before


def exit_code() -> int:
    """The exit code of a command that a signal has ended."""
    return 128 + (_state.number or signal.SIGINT)


def say_stopped(remark: str = "") -> None:
    """Say that a signal has ended the command, if nobody has done so, and what is on disk."""
    if _state.unsaid.acquire(blocking=False):
        name = NAMES[signal.Signals(_state.number or signal.SIGINT)]
        text = f"mellowmax: stopped by {name}{'; ' if remark else ''}{visible(remark)}"
        with contextlib.suppress(OSError):  # past `sys.stderr`, which another thread may hold
            os.write(2, f"{wrapped(text, columns(2))}\n".encode())


def _wait(signals: socket.socket) -> None:
    """Wait for a signal, and see to it that the process ends."""
    while _state.number is None:
        (number,) = signals.recv(1)
        if number in NAMES:
            _state.number = number
    if _state.stop is not None:
        _state.stop.set()
        signals.settimeout(GRACE)
        with contextlib.suppress(TimeoutError):
            signals.recv(1)
    sudden_end(exit_code())
