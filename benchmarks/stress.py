"""Kills and signals at random moments of every command: what was lost, and what was left behind.

    python benchmarks/stress.py                 1000 of them, some hours on two cores
    python benchmarks/stress.py --count 40      a few minutes

Each trial starts a command where the one before left it, waits for a random moment, and sends
SIGINT, SIGTERM or SIGKILL. Then it looks for what must not be: a wrong exit code, a traceback, more
than one sentence, an end that takes longer than two seconds, a process or a temporary file that is
left, a file that cannot be read. When a command comes to its end, all that it wrote must be what an
undisturbed run writes, byte for byte; then it starts anew. Moments are counted from when a command
watches its signals, which is when Python itself has started and imported NumPy.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
SECONDS = 2.0
"""Within which a command must end."""
SLACK = 1.0
"""More of them for a machine that has other work to do; SIGKILL needs some, too."""
MARK = "MELLOWMAX_STRESS"
"""A variable of the environment, by which all processes of a trial are known."""
TRAIN = "train CartPole-v1 --softmax boltzmann --parameter 0.3 --episodes 400 --normalise --runs 2"
COMMANDS = {
    "solve": "solve model.npz --softmax mellowmax --parameter 5 --method in-place --out out.npz",
    "train": f"{TRAIN} --workers 0 --out out",
    "train, workers": f"{TRAIN} --workers 2 --out out",
    "evaluate": "evaluate policy --episodes 300 --render out.gif",
    "reproduce": "reproduce fig2 fig4 --out out",
    "report": "report reproduction",
    "show": "show model.npz",
}
FIXED = {"episodes.csv", "learning_curve.svg", "learning_curve.png", "out.gif"}
"""What is the same after every undisturbed run; cells and solutions also say how long it took."""


class Stress:
    """Commands by their names, each in a directory of its own, and what went wrong."""

    def __init__(self, commands: dict[str, str], seed: int = 0, log: bool = False) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mellowmax-stress-"))
        self.random, self.log = random.Random(seed), log
        self.wrong: dict[str, collections.Counter[str]] = {}
        self.trials: collections.Counter[str] = collections.Counter()
        self.ends: collections.Counter[str] = collections.Counter()
        self.slowest = dict.fromkeys(commands, 0.0)
        self.undisturbed: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[str, float] = {}
        self.environment = os.environ | {"XDG_CACHE_HOME": str(self.root / "cache")}
        self.commands, self.names = commands, [*commands]

    def prepare(self) -> None:
        """Run every command once: for what it writes, how long it takes, and compiled programs."""
        from mellowmax.mdp import garnet

        for name in self.names:
            self.wrong[name] = collections.Counter()
            here = self.root / name
            here.mkdir()
            if "model.npz" in self.commands[name]:
                garnet(300, 4, 3, seed=0, discount=0.995).save(here / "model.npz")
            if name == "evaluate":
                few = TRAIN.replace("CartPole-v1", "LunarLander-v3").replace("400", "20")
                self._run(here, f"{few} --workers 0 --out policy")
            if name == "report":
                self._run(here, "reproduce fig2 --out reproduction")
            began = time.monotonic()
            self._run(here, self.commands[name])  # which compiles
            print(f"{name}: {time.monotonic() - began:.1f} s at first", end="", file=sys.stderr)
            if name != "report":
                self._clear(name)
            began = time.monotonic()
            self._run(here, self.commands[name])
            self.seconds[name] = time.monotonic() - began
            self.undisturbed[name] = self._written(name)
            self._clear(name)
            print(f", {self.seconds[name]:.1f} s again", file=sys.stderr)

    def trial(self, name: str) -> None:
        """Start a command, send it a signal at some moment, and look at what there is."""
        here, mark = self.root / name, f"{os.getpid()}-{sum(self.trials.values())}"
        self.trials[name] += 1
        process = subprocess.Popen(
            self._line(self.commands[name]),
            cwd=here,
            env=self.environment | {MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while process.poll() is None and not _watches(process.pid):
            time.sleep(0.001)
        time.sleep(self.random.uniform(0, self.seconds[name]))
        sent = self.random.choice(SIGNALS)
        over = process.poll() is not None
        if sent == signal.SIGINT and self.random.random() < 0.5 and not over:
            os.killpg(process.pid, sent)  # as a terminal does
        else:
            process.send_signal(sent)
        began = time.monotonic()
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            _, said = process.communicate()
        took = time.monotonic() - began
        self._judge(name, sent, process.returncode, said, took)
        while (left := _processes(mark)) and time.monotonic() - began < SECONDS + SLACK:
            time.sleep(0.02)
        self._check(name, not left, f"{len(left)} processes are left", said)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self._look(name, said)
        if process.returncode == 0:
            self.ends[name] += 1
            same = self._written(name) == self.undisturbed[name]
            self._check(name, same, "other files than undisturbed", said)
            self._clear(name)

    def _judge(self, name: str, sent: signal.Signals, code: int, said: str, took: float) -> None:
        """The exit code, the time and the words of a command."""
        expected = {0, -sent if sent == signal.SIGKILL else 128 + sent}
        self._check(name, code in expected, f"exit code {code} after {sent.name}", said)
        self._check(name, "Traceback" not in said, "a traceback", said)
        self._check(name, took <= SECONDS + SLACK, f"{took:.1f} s until the end", said)
        self.slowest[name] = max(self.slowest[name], took)
        sentences = [line for line in said.splitlines() if line.startswith("mellowmax: ")]
        wanted = 0 if code in (0, -signal.SIGKILL) else 1
        self._check(name, len(sentences) == wanted, f"{len(sentences)} sentences", said)

    def _look(self, name: str, said: str) -> None:
        """No temporary files, and every file is whole."""
        for path in (self.root / name).rglob("*"):
            self._check(name, path.suffix != ".tmp", f"left {path.name}", said)
            if path.suffix == ".npz":
                try:
                    with np.load(path) as file:
                        for member in file.files:
                            file[member]
                except Exception as error:
                    self._check(name, False, f"{path.name} cannot be read: {error!r}", said)

    def _check(self, name: str, right: bool, what: str, said: str) -> None:
        if not right:
            self.wrong[name][what] += 1
            if self.log:
                print(f"{name}: {what}\n{said}", file=sys.stderr)

    def _written(self, name: str) -> dict[str, bytes]:
        """What a command has written: names, and contents where they do not tell the time."""
        here = self.root / name
        return {
            str(path.relative_to(here)): path.read_bytes()
            if path.name in FIXED or "tables" in path.parts
            else b""
            for path in sorted(here.rglob("*"))
            if path.is_file()
        }

    def _clear(self, name: str) -> None:
        """Let a command begin anew."""
        for path in (self.root / name).glob("out*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _run(self, here: Path, command: str) -> None:
        line = self._line(command)
        done = subprocess.run(line, cwd=here, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"`{command}` failed undisturbed:\n{done.stderr}")

    def _line(self, command: str) -> list[str]:
        return [sys.executable, "-m", "mellowmax", *command.split()]

    def print_table(self) -> None:
        """A row for each command."""
        print(f"{'command':16s} {'trials':>6s} {'came to its end':>16s} {'slowest':>8s}   wrong")
        for name in self.names:
            wrong = "; ".join(f"{n} x {what}" for what, n in self.wrong[name].items()) or "0"
            row = f"{name:16s} {self.trials[name]:6d} {self.ends[name]:16d}"
            print(f"{row} {self.slowest[name]:6.2f} s   {wrong}")
        total = sum(sum(wrong.values()) for wrong in self.wrong.values())
        print(f"{sum(self.trials.values())} kills and signals, {total} things wrong")


def _watches(pid: int) -> bool:
    """Has a process begun to watch SIGTERM, as a command does before all else?"""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")), 0)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def _processes(mark: str) -> list[int]:
    """The processes of a trial that are still there."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                if f"{MARK}={mark}\0".encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:  # it has ended, or is another's
                pass
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills and signals at random moments.")
    parser.add_argument("--count", type=int, default=1000, help="how many kills and signals")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and the signals")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="of some commands alone")
    parser.add_argument("--log", action="store_true", help="say what is wrong at once")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or commands would ignore it, too
    chosen = {name: COMMANDS[name] for name in options.only or COMMANDS}
    stress = Stress(chosen, options.seed, options.log)
    try:
        stress.prepare()
        for i in range(options.count):
            stress.trial(stress.names[i % len(stress.names)])
    except KeyboardInterrupt:
        pass
    finally:
        shutil.rmtree(stress.root)
    stress.print_table()
    return int(any(stress.wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
