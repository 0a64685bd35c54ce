"""An environment of its own for each peer, made on first use in `build/bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parent.parent / "build" / "bench"


def python_of(peer, *installs):
    """The peer's Python, once pip has been called with each of the lists of arguments."""
    home = BUILD / peer
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        print(f"installing {peer}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        for arguments in installs:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)
        (home / "installed").touch()
    return python
