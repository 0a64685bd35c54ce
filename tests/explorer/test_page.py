"""The page in a real Chromium: what it says, and every hand that can be laid on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mellowmax import Boltzmann
from mellowmax.explorer import exhibits, page
from mellowmax.explorer.inline import inlined, source
from mellowmax.mdp import two_state
from mellowmax.planning import fixed_points

ABOUT = """({
  sentence: document.getElementById("sentence").textContent,
  counts: [...document.querySelectorAll(".count")].map((e) => e.textContent),
  beta: Number(document.querySelector("#boltzmann .number").value),
  omega: Number(document.querySelector("#mellowmax .number").value),
  points: [...document.querySelectorAll("#boltzmann tbody tr")].map((r) => r.className.split(" ")),
  values: [...document.querySelectorAll("#boltzmann tbody th")].map((e) => Number(e.textContent)),
  here: document.querySelector("#boltzmann tbody .here th")?.textContent,
  hash: location.hash,
})"""


def about(tab):
    return tab.evaluate(ABOUT)


def noted(tab):
    """The same once the gesture is in the address."""
    return tab.evaluate(f"new Promise((done) => setTimeout(() => done({ABOUT}), 70))")


def click(tab, selector):
    tab.drag(tab.centre(selector))


def test_nothing_of_the_page_comes_from_elsewhere_and_its_policy_allows_nothing():
    text = page(exhibits())
    assert text.count("<script>") == text.count("<style>") == 1
    assert "default-src 'none'" in text
    assert "unsafe" not in re.search(r'Security-Policy" content="([^"]*)"', text)[1]
    assert set(re.findall(r'https?://[^"\s<\\]*', text)) <= {
        "https://arxiv.org/abs/1612.05628",  # a link
        "http://www.w3.org/2000/svg'",  # the name of SVG, in the icon
    }
    assert page(exhibits()) == text


def test_a_block_cannot_end_its_script():
    assert "</script><b>" not in page([{"kind": "model", "name": "</script><b>"}])


def test_every_source_is_short_and_used():
    sources = Path(__file__).parents[2] / "src" / "mellowmax" / "explorer" / "sources"
    for path in sources.iterdir():
        assert len(source(path.name).splitlines()) <= 400, path.name
        assert path.suffix != ".js" or f"const ${path.stem} =" in inlined("main"), path.name


@pytest.mark.parametrize(
    ("beta", "stable"), [(16, [True]), (16.6, [True, False, True]), (17, [True])]
)
def test_the_sentence_and_the_fixed_points(tab, file, beta, stable):
    values = [point.value[0] for point in fixed_points(two_state(), Boltzmann(beta))]
    tab.open(file, 1280, fragment=f"beta={beta}")
    found = about(tab)
    count = {1: "one fixed point", 3: "three fixed points"}[len(stable)]
    assert (
        f"At β = {beta:.2f} planning with Boltzmann\u2019s softmax has {count}:"
        in found["sentence"]
    )
    assert ("depends on where you start" in found["sentence"]) == (len(stable) == 3)
    assert "Mellowmax at ω = 16.60 has one, V = 0.431" in found["sentence"]
    assert found["counts"] == [count, "one fixed point"]
    assert ["stable" in kind for kind in found["points"]] == stable
    assert found["values"] == pytest.approx(values, abs=5e-4)


def test_no_request_leaves_the_page(tab, file):
    tab.open(file, 1280)
    assert tab.loads() == [file.as_uri()]
    refused = tab.evaluate(
        """new Promise((done) => {
        addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => 0); })"""
    )
    assert refused == "connect-src"
    assert tab.loads() == [file.as_uri()]
    tab.events.clear()  # the complaint was asked for


def test_the_charts_are_dragged_and_planning_goes_on_from_where_it_was(tab, file):
    """One gesture: up through the fold and back. A drag that stays short of it returns."""
    tab.open(file, 1280)
    share = tab.evaluate(
        """(() => { const s = document.querySelector("#boltzmann .slider");
        return (16.6 - s.min) / (s.max - s.min); })()"""
    )
    wide = tab.evaluate("document.querySelector('#boltzmann .branches').clientWidth")
    at = (46 + share * (wide - 60)) / wide  # of the canvas, with its margins
    (x, y), right = tab.within("#boltzmann .branches", at, 0.5), wide / 8
    tab.drag((x, y), (x + right / 4, y), (x, y))
    assert about(tab)["here"] == "0.577"
    tab.drag((x, y), (x + right, y))
    over = about(tab)
    assert over["beta"] > 16.78
    assert over["counts"][0] == "one fixed point"
    tab.drag((x + right, y), (x, y))
    back = about(tab)
    assert back["beta"] == pytest.approx(16.6, abs=0.01)
    assert back["here"] == "0.895"
    assert "Going on from where it was, it ends at 0.895" in back["sentence"]


def test_a_start_is_dropped_and_dragged_on_the_plane(tab, file):
    tab.open(file, 1280)
    tab.drag(tab.within("#boltzmann .plane", 0.9, 0.2), tab.within("#boltzmann .plane", 0.8, 0.3))
    high = noted(tab)
    assert high["here"] == "0.895"
    assert re.search(r"from=[\d.]+,[\d.]+", high["hash"])
    tab.drag(tab.within("#boltzmann .plane", 0.25, 0.8))
    assert about(tab)["here"] == "0.577"


def test_the_numbers_of_the_mdp_are_scrubbed(tab, file):
    tab.open(file, 1280)
    x, y = tab.centre("#ra")
    tab.drag((x, y), (x + 30, y))
    assert tab.evaluate("document.getElementById('ra').textContent") == "0.15211"
    found = noted(tab)
    assert found["counts"][0] == "one fixed point"
    assert "mdp=0.15211," in found["hash"]
    tab.press("ArrowLeft")
    assert tab.evaluate("document.getElementById('ra').getAttribute('aria-valuenow')") == "0.15111"


def test_keys_alone_reach_and_do_everything(tab, file):
    tab.open(file, 1280)
    reached = []
    for _ in range(60):
        tab.press("Tab")
        name = tab.evaluate("document.activeElement.id || document.activeElement.className")
        reached.append(name)
        if name == "slider" and "boltzmann" not in reached:
            reached.append("boltzmann")
            tab.press("ArrowRight")
            assert about(tab)["beta"] == 16.61
            assert "three" in tab.evaluate("document.activeElement.getAttribute('aria-valuetext')")
            tab.press("PageUp")
            assert about(tab)["beta"] == 17.61
            tab.press("]")
            assert about(tab)["beta"] == 16.7709
            tab.press("[")
            assert about(tab)["beta"] == 16.4951
            assert about(tab)["counts"][0] == "three fixed points"
        elif name == "plane" and "moved" not in reached:
            reached.append("moved")
            assert "from=" not in noted(tab)["hash"]
            tab.press("ArrowUp")
            assert "from=" in noted(tab)["hash"]
        elif name == "branches" and "turned" not in reached:
            reached.append("turned")
            before = about(tab)["beta"]
            tab.press("ArrowLeft")
            assert about(tab)["beta"] == pytest.approx(before - 0.01)
        elif name == "loop":
            tab.press("Enter")
            assert "did not return" in about(tab)["sentence"]
        if tab.evaluate("document.activeElement === document.body"):
            break
    controls = {"loop", "break", "learn", "copy", "reset", "slider", "number", "plane", "branches"}
    controls |= {
        "magnify quiet",
        "ra",
        "rb",
        "pa",
        "pb",
        "discount",
        "level",
        "grid",
        "play",
        "time",
    }
    assert controls <= set(reached)
    tab.press(" ")  # with nothing in focus
    assert "steps" in tab.evaluate("document.getElementById('learned').textContent")


def test_a_finger_taps_and_drags_and_still_scrolls(tab, file):
    tab.open(file, 390)
    x, y = tab.within("#boltzmann .plane", 0.85, 0.2)
    tab.swipe((x, y))
    assert about(tab)["here"] == "0.895"
    x, y = tab.within("#boltzmann .branches", 0.5, 0.6)
    tab.swipe((x, y))
    assert about(tab)["beta"] == 16.6  # a stray tap turns nothing
    tab.swipe((x, y), (x + 20, y), (x + 60, y))
    turned = about(tab)["beta"]
    assert turned > 16.7
    tab.swipe((x, y), (x, y - 30), (x, y - 90))
    assert about(tab)["beta"] == turned  # nor does a scroll


def test_back_undoes_a_gesture_and_forward_does_it_again(tab, file):
    tab.open(file, 1280)
    tab.evaluate("document.querySelector('#boltzmann .slider').focus()")
    for _ in range(5):
        tab.press("ArrowRight")  # one gesture
    click(tab, "#break")
    broken = noted(tab)
    assert broken["counts"] == ["three fixed points", "one fixed point"]

    def go(way):
        return tab.evaluate(
            f"""new Promise((done) => {{ addEventListener("popstate", () => done({ABOUT}),
            {{once: true}}); history.{way}(); }})"""
        )

    assert go("back")["beta"] == 16.65
    first = go("back")
    assert (first["beta"], first["hash"]) == (16.6, "")
    assert go("forward")["beta"] == 16.65
    assert go("forward") == broken


@pytest.mark.parametrize(
    "fragment",
    [
        "beta=16.55&omega=3.25&from=0.9,0.4&wide=1",
        "mdp=0.199,0.996,0.942,0.298,0.98&beta=1.5",
        "loop=1",
        "at=0.9,0.7&taxi=4,5",
        "learns=1&rate=0.02&speed=100000",
    ],
)
def test_an_address_is_a_state_and_a_state_an_address(tab, file, fragment):
    tab.open(file, 1280, fragment=fragment)
    shown = about(tab)
    x, y = tab.centre("#mellowmax .slider")
    tab.drag((x, y))  # any gesture writes the whole state
    changed = noted(tab)
    named = dict(part.split("=") for part in changed["hash"][1:].split("&"))
    given = dict(part.split("=") for part in fragment.split("&"))
    assert {name: named[name] for name in given if name != "omega"} == {
        name: text for name, text in given.items() if name != "omega"
    }
    tab.open(file, 1280, fragment=changed["hash"][1:])
    assert about(tab) == changed
    assert shown["points"] == changed["points"]


def test_an_address_that_is_damaged_is_as_in_the_beginning(tab, file):
    tab.open(file, 1280, fragment="beta=x&mdp=1,2&from=,&omega=-5&taxi=900,900&model=9,9,9&rate=")
    found = about(tab)
    assert (found["beta"], found["omega"]) == (16.6, 0)
    assert found["values"] == [0.577, 0.739, 0.895]


def test_the_guide_shows_four_states_each_a_link(tab, file):
    tab.open(file, 1280)
    expected = ["one fixed point", "three fixed points", "did not return", "ω = 30.00"]
    for step, words in enumerate(expected, 1):
        click(tab, f"#steps li:nth-child({step}) a")
        assert words in about(tab)["sentence"]
        here = "[...document.querySelectorAll('#steps a')].findIndex((a) => a.ariaCurrent)"
        assert tab.evaluate(here) == step - 1


def test_hysteresis_moves_and_ends_where_it_says(tab, file):
    tab.open(file, 1280, motion="no-preference")
    click(tab, "#loop")
    ended = tab.evaluate(
        """new Promise((done) => { const look = () => location.hash.includes("loop")
        ? done(document.getElementById("sentence").textContent) : requestAnimationFrame(look);
        look(); })"""
    )
    assert "up through the fold at 16.77 and came back to 16.60" in ended
    assert "V was 0.577, and is 0.895" in ended


def test_sarsa_runs_and_pauses(tab, file):
    tab.open(file, 1280, fragment="speed=1000000&rate=0.05", motion="no-preference")
    words = "document.getElementById('learned').textContent"
    steps = f"Number({words}.match(/[\\d,]+/)[0].replace(/,/g, ''))"
    click(tab, "#learn")
    tab.evaluate(f"new Promise((done) => {{ const look = () => {steps} > 20000 ? done(1) : "
                 "requestAnimationFrame(look); requestAnimationFrame(look); })")  # fmt: skip
    assert "% of the steps below the fixed point that repels" in tab.evaluate(words)
    click(tab, "#learn")
    paused = tab.evaluate(steps)
    frames = (
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
    )
    tab.evaluate(frames)
    assert tab.evaluate(steps) == paused
    honest = tab.evaluate("document.querySelector('.honest').textContent")
    assert "need not sit on a fixed point" in " ".join(honest.split())


def test_a_reader_who_wants_no_motion_sees_the_end_at_once(tab, file):
    tab.open(file, 1280)
    tab.evaluate("requestAnimationFrame = () => { throw new Error('it moves'); }, 1")
    click(tab, "#loop")
    assert "did not return" in about(tab)["sentence"]
    plane = "document.querySelector('#boltzmann .plane').toDataURL()"
    without = tab.evaluate(plane)
    click(tab, "#learn")
    tab.evaluate("new Promise((done) => setTimeout(done, 200))")  # until all has been drawn
    assert tab.evaluate(plane) != without
    assert "After 200,000 steps" in tab.evaluate("document.getElementById('learned').textContent")


GAME = """({
  said: document.querySelector("#game .said").textContent,
  rows: [...document.querySelectorAll("#game .points tr")].map((row) => row.className),
  parameter: document.querySelector("#game .parameter").textContent,
  hash: location.hash,
})"""


def of_game(tab):
    """What is said of the game, once the gesture is in the address."""
    return tab.evaluate(f"new Promise((done) => setTimeout(() => done({GAME}), 70))")


def test_the_game_is_played_by_hand_and_by_keys(tab, file):
    tab.open(file, 1280)
    found = of_game(tab)
    assert "At ω = 14.00 there are three equilibria. Two of them are stable." in found["said"]
    assert found["rows"] == ["stable", "unstable", "stable"]
    assert "end at up 0.017, left 0.017" in found["said"]
    tab.evaluate("document.querySelector('#game').scrollIntoView({block: 'center'})")
    tab.drag(tab.within("#game .answers", 0.9, 0.4))  # another start
    assert "end at up 0.932, left 0.932" in of_game(tab)["said"]
    tab.drag(tab.within("#game .equilibria", 0.5, 0.4))  # before the fold
    found = of_game(tab)
    assert found["rows"] == ["stable"]
    assert "game=1," in found["hash"]
    click(tab, "#game .games button:nth-child(3)")
    assert "there is one equilibrium" in of_game(tab)["said"]
    click(tab, "#game input[value=boltzmann]")
    found = of_game(tab)
    assert found["parameter"] == "β = 4.00"
    assert "they do not settle within 400 rounds" in found["said"]
    tab.evaluate("document.querySelector('#game .equilibria').focus()")
    tab.press("ArrowRight")
    assert of_game(tab)["parameter"] == "β = 4.05"
    tab.evaluate("document.querySelector('#game .payoffs .scrub').focus()")
    tab.press("ArrowUp")
    payoff = "document.querySelector('#game .payoffs .scrub').textContent"
    assert tab.evaluate(payoff) == "3.01"
    again = of_game(tab)
    tab.evaluate("history.back()")
    tab.open(file, 1280, fragment=again["hash"].removeprefix("#"))
    assert of_game(tab)["said"] == again["said"]
