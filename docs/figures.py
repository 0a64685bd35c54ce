"""The figures of the README and the docs: `make figures` draws them into docs/images.

The still of the explorer needs Chromium; the numbers of its taxi go into the package.

Where there is a reproduction, its verdicts and figures go into the docs as well; those
in the repository are from `mellowmax reproduce --scale paper`, with `fig11 --scale quick` in the
same directory.
"""

from __future__ import annotations

import doctest
import json
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from mellowmax import (
    Boltzmann,
    EpsilonGreedy,
    LogSumExp,
    Max,
    Mean,
    Mellowmax,
    Resmax,
    Sparsemax,
    mellowmax_temperature,
)
from mellowmax.environments.gymnasium import MultiPassengerTaxi
from mellowmax.explorer import write_page
from mellowmax.explorer.gallery import compute_taxi
from mellowmax.games import Game, equilibria, trace
from mellowmax.mdp import multi_passenger_taxi
from mellowmax.planning import solve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import inverse_figures

from helpers.browser import browser

IMAGES = Path(__file__).parent / "images"
TAXI = Path(__file__).parent.parent / "src/mellowmax/explorer/data/taxi.json"
REPRODUCTION = Path(__file__).parent.parent / "reproduction"
STYLE = {  # Okabe and Ito's colours, told apart by dashes too
    "max": {"color": "#000000", "linestyle": ":"},
    "mean": {"color": "#999999", "linestyle": "-."},
    "boltzmann": {"color": "#D55E00", "linestyle": "--"},
    "mellowmax": {"color": "#0072B2", "linestyle": "-"},
    "epsilon-greedy": {"color": "#56B4E9", "linestyle": (0, (1, 1))},
    "resmax": {"color": "#CC79A7", "linestyle": (0, (5, 1))},
    "sparsemax": {"color": "#009E73", "linestyle": (0, (3, 1, 1, 1))},
}


def operators(axes: plt.Axes) -> None:
    """One action stays at 1, the other rises: Boltzmann's value falls before it rises."""
    x = np.linspace(-2, 1.5, 500)
    q = np.stack([np.ones_like(x), x], axis=-1)
    pairs = {"max": Max(), "mean": Mean(), "boltzmann": Boltzmann(3.0), "mellowmax": Mellowmax(3.0)}
    for name, pair in pairs.items():
        axes.plot(x, pair.value(q), **STYLE[name], label=str(pair))
    axes.set(xlabel="value of the other action", ylabel="value of the operator", ylim=(-0.6, 1.6))
    axes.set_title("Two actions, one of them worth 1")
    axes.legend(frameon=False, loc="lower right")


def temperatures(axes: plt.Axes) -> None:
    """The inverse temperature of the policy for values that are nearly tied, or not."""
    omega = np.linspace(0.01, 60, 400)
    axes.plot(omega, omega, color="#999999", linestyle=":", label="$\\omega$ itself")
    for gap, style in ((0.05, "-"), (0.3, "--"), (1.0, "-.")):
        b = mellowmax_temperature(np.array([0.0, gap / 2, gap]), omega)
        axes.plot(omega, b, color="#0072B2", linestyle=style, label=f"values {gap:g} apart")
    axes.axhline(10, color="#D55E00", linewidth=1)
    axes.text(59, 8.2, "a fixed bracket ends at 10", color="#D55E00", ha="right")
    axes.set(xlabel="$\\omega$", ylabel="inverse temperature $b$", ylim=(0, 35))
    axes.set_title("The inverse temperature of mellowmax's policy")
    axes.legend(frameon=False, loc="upper left")


def policies(axes: plt.Axes) -> None:
    """The probability of the worse of two actions, against how much worse it is."""
    width = np.concatenate([np.linspace(0.0, 1.0, 501), np.linspace(1.0, 10.0, 200)])
    q = np.stack([np.zeros_like(width), -width], axis=-1)
    pairs = {
        "mean": Mean(),
        "mellowmax": Mellowmax(1.0),
        "resmax": Resmax(1.0),
        "epsilon-greedy": EpsilonGreedy(0.1),
        "boltzmann": LogSumExp(1.0),
        "sparsemax": Sparsemax(1.0),
    }
    labels = {
        "mean": (9.0, 0.54),
        "mellowmax": (5.4, 0.081),
        "resmax": (8.8, 0.105),
        "epsilon-greedy": (7.8, 0.034),
        "boltzmann": (4.7, 0.012),
        "sparsemax": (1.1, 0.0014),
    }
    more = {
        "boltzmann": "Boltzmann, log-sum-exp, free energy",
        "sparsemax": "sparsemax: 0 from 1 on (and max: always 0)",
    }
    for name, softmax in pairs.items():
        probability = softmax.policy(q)[:, 1]
        shown = np.where(probability > 0, probability, np.nan)
        axes.semilogy(width, shown, **STYLE[name])
        axes.text(*labels[name], more.get(name, name), color=STYLE[name]["color"])
    axes.set(
        xlabel="parameter times the gap between the two values",
        ylabel="probability of the worse action",
        ylim=(1e-3, 1),
        xlim=(0, 10),
    )
    axes.set_title("How often each policy takes the worse of two actions")


def branches(whole: plt.Axes, near: plt.Axes) -> None:
    """A zero-sum game with one logit equilibrium, and three of mellowmax at a parameter near 1."""
    game = Game.zero_sum([[10, -10], [-12, 10], [88, -558]])
    curves = {"boltzmann": Boltzmann, "mellowmax": Mellowmax}
    curves = {name: trace(game, one, [0.0, 2.0], step=0.005) for name, one in curves.items()}
    for axes, ends in ((whole, (0.0, 2.0)), (near, (0.95, 1.1))):
        for name, branch in curves.items():
            left = [point.profile[1][0] for point in branch.points]
            label = "logit" if name == "boltzmann" else name
            axes.plot(branch.parameters, left, **STYLE[name], label=label)
        for point in equilibria(game, Mellowmax(1.0)):
            fill = STYLE["mellowmax"]["color"] if point.stable else "white"
            place = (point.parameter, point.profile[1][0])
            axes.plot(*place, "o", color=STYLE["mellowmax"]["color"], markerfacecolor=fill)
        axes.set(xlabel="parameter", xlim=ends)
    near.set(ylim=(0.47, 0.54), title="Near 1; a white dot is not stable")
    whole.set(ylabel="probability of left", title="The principal branch")
    whole.legend(frameon=False)


def save(figure: plt.Figure, name: str) -> None:
    """As SVG and PNG."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    figure.savefig(IMAGES / f"{name}.png", dpi=150)


def still() -> None:
    """The first screen of the explorer after planning has gone up through the fold and back."""
    with tempfile.TemporaryDirectory() as directory, browser() as tab:
        path = Path(directory) / "explorer.html"
        write_page(path)
        tab.open(path, 1280, fragment="loop=1")
        size = {"width": 1280, "height": 1336, "deviceScaleFactor": 1, "mobile": False}
        tab("Emulation.setDeviceMetricsOverride", **size)
        tab.evaluate("new Promise((done) => setTimeout(done, 300))")
        tab.screenshot(IMAGES / "explorer.png", whole=False)
    image = Image.open(IMAGES / "explorer.png").convert("RGB").quantize(128)
    image.save(IMAGES / "explorer.png", optimize=True)


def film_of_taxi(path: Path, seed: int = 0) -> None:
    """One episode of the policy that earns most."""
    policy = solve(multi_passenger_taxi(), Max()).policy
    env = MultiPassengerTaxi(render_mode="rgb_array")
    state, _ = env.reset(seed=seed)
    pictures, ended = [env.render()], False
    while not ended:
        state, _, ended, _, _ = env.step(int(policy[state].argmax()))
        pictures.append(env.render())
    size = (420, 420 * pictures[0].shape[0] // pictures[0].shape[1])
    few = [Image.fromarray(picture).resize(size).quantize(32) for picture in pictures]
    times = [250] * (len(few) - 1) + [1500]
    few[0].save(path, save_all=True, append_images=few[1:], duration=times, loop=0, optimize=True)


def fields() -> None:
    """The pictures of the page on fields, which its examples make."""
    page = Path(__file__).parent / "howto" / "fields.md"
    examples = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    doctest.DocTestRunner().run(examples, clear_globs=False)
    for name in ("inventory", "queue", "replacement", "life_cycle"):
        picture = examples.globs[f"{name}_picture"]
        picture.savefig(IMAGES / f"field_{name}.svg", dpi=150, metadata={"Date": None})


def main() -> None:
    """Draw them."""
    TAXI.write_text(json.dumps(compute_taxi(), separators=(",", ":")) + "\n")
    still()
    plt.rcParams.update({"font.size": 11, "svg.hashsalt": "mellowmax", "svg.fonttype": "path"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    operators(left)
    temperatures(right)
    save(figure, "operators")
    fields()
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    policies(axes)
    save(figure, "policies")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    branches(left, right)
    save(figure, "game_branches")
    inverse_figures.draw(save)
    taxi = MultiPassengerTaxi(render_mode="rgb_array")
    taxi.reset(seed=0)
    Image.fromarray(taxi.render()).save(IMAGES / "taxi.png")
    film_of_taxi(IMAGES / "taxi.gif")
    if (REPRODUCTION / "report.md").exists():
        text = (REPRODUCTION / "report.md").read_text()
        for path in (REPRODUCTION / "figures").glob("*.svg"):
            if f"(figures/{path.name})" in text:
                shutil.copy(path, IMAGES)
        (IMAGES.parent / "reproduction.md").write_text(text.replace("](figures/", "](images/"))


if __name__ == "__main__":
    main()
