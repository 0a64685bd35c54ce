"""`mellowmax explore`: the page on which planning breaks, served or written to a file."""

from __future__ import annotations

import os
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._common.compiled_programs import keep_compiled_programs
from .._common.files import check_output
from .._common.signals import early_end
from .._common.terminal import say, say_error
from .._common.text import visible
from .console import errors_in_one_sentence
from .models import load_model
from .options import Discount, Force, paths
from .result import progress_unless

if TYPE_CHECKING:
    from ..explorer import Block, PageServer

__all__ = ["explore"]


def explore(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A saved MDP, or the id of a Gymnasium environment.",
            autocompletion=paths(".npz"),
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the page to this file, and serve nothing.", autocompletion=paths(".html")
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Serve the page, but open no browser.")
    ] = False,
    port: Annotated[int, typer.Option(help="The port to serve it on; 0 for a free one.")] = 0,
    discount: Discount = 0.99,
    force: Force = False,
) -> None:
    """Open a page to explore planning with a softmax.

    Example: mellowmax explore FrozenLake-v1 --save page.html

    It shows the paper's two-state MDP, or MODEL. A MODEL with two actions and a single state that
    is not terminal is live. Of any other, the page shows values, policies and inverse temperatures
    over a range of the parameter. The page is served to this machine only, until Ctrl-C. It is one
    file that needs no network. The exit code is 0, and 2 for a wrong argument.
    """
    with errors_in_one_sentence():
        from ..explorer import PageServer, page, write_page
        from ..explorer.page import is_page

        if save is not None:
            check_output("--save", save, is_page, source=model, force=force)
        blocks = _blocks(model, discount)
        if save is not None:
            write_page(save, blocks)
            say(visible(str(save)))
            return
        server = PageServer(page(blocks), port)
    with server, early_end("") as stop:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say(f"{server.url} (Ctrl-C ends it)")
        if not no_browser:
            _open(server)
        stop.wait()
        server.shutdown()


def _blocks(model: str | None, discount: float) -> list[Block]:
    """What the page shows besides the paper's MDP."""
    from ..explorer import exhibits
    from ..explorer import model as model_block

    if model is None:
        return exhibits()
    mdp = load_model(model, discount)
    keep_compiled_programs()
    name = Path(model).name if os.path.exists(model) else model
    with progress_unless(False) as report:
        block = model_block(mdp, name, lambda share: report(share, f"{share:.0%} solved"))
    return [block, *exhibits()]


def _open(server: PageServer) -> None:
    try:
        opened = webbrowser.open(server.url)
    except webbrowser.Error:
        opened = False
    if not opened:
        say_error(f"no browser was found; open {server.url} in one")
