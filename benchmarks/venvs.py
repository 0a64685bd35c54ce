"""An environment of its own for each peer, made on first use in `build/bench`."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

BUILD = Path(__file__).parent.parent / "build" / "bench"


def python_of(peer, *installs, beside_ours=False):
    """The peer's Python, once pip has been called with each of the lists of arguments.

    `beside_ours`: does it find the packages of this Python too, where it has none of that name?
    Then both can be timed in one process.
    """
    home = BUILD / peer
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        print(f"installing {peer}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        for arguments in installs:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)
        if beside_ours:
            paths = "\n".join(path for path in sys.path[1:] if path)
            (Path(sysconfig.get_path("purelib", vars={"base": str(home)})) / "ours.pth").write_text(
                paths
            )
        (home / "installed").touch()
    return python
