"""The page for any reader: narrow, dark, on paper, read aloud; what it costs; and its gallery."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_core_python import __path__ as axe_path

from helpers.browser import check_page
from mellowmax.explorer import exhibits, taxi, write_page

AXE = Path(axe_path[0], "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (320, "light"), (1280, "dark")]
)
def test_the_page_fits_any_reader(tab, file, width, scheme):
    found = check_page(tab, file, width, scheme)
    assert found["complaints"] == []
    assert found["scroll_width"] <= width
    assert found["overflowing"] == []
    assert found["contrast"] >= 4.5, found["contrast_where"]
    small = tab.evaluate(
        """[...document.querySelectorAll("button, input, select, summary, #steps a")]
        .filter((e) => !["checkbox", "radio"].includes(e.type) && e.getClientRects().length)
        .filter((e) => e.getBoundingClientRect().height < 43.9).map((e) => e.id || e.className)"""
    )
    assert small == []


def test_on_paper_it_is_light_and_without_what_only_a_screen_needs(tab, file, tmp_path):
    tab.open(file, 720, "dark", "print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    shown = "[...document.querySelectorAll('nav, .tools, .slider')].filter(n => n.offsetHeight)"
    assert tab.evaluate(f"{shown}.length") == 0
    drawn = """[...document.querySelectorAll("canvas")].map((canvas) => canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.some((x) => x !== 0))"""
    tab("Emulation.setDeviceMetricsOverride", width=600, height=900, deviceScaleFactor=1,
        mobile=False)  # fmt: skip
    assert all(tab.evaluate(f"new Promise((done) => setTimeout(() => done({drawn}), 60))"))
    tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(tab, file, scheme):
    tab.open(file, 1280, scheme, fragment="learns=1")
    tab.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    tab.evaluate(AXE + "; 1")
    violations = "r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)])"
    assert tab.evaluate(f"axe.run().then((r) => {violations})") == []


def test_the_sentence_is_read_aloud_once_it_rests(tab, file):
    tab.open(file, 1280)
    tab.evaluate("document.querySelector('#boltzmann .slider').focus()")
    tab.press("ArrowRight")
    spoken = "document.getElementById('spoken').textContent"
    assert tab.evaluate(spoken) == ""
    tab.evaluate("new Promise((done) => setTimeout(() => done(1), 750))")
    assert "At β = 16.61" in tab.evaluate(spoken)


def test_the_work_of_a_redraw_is_bounded(tab, file):
    """A key or a step of a drag: evaluations of exp, and calls that draw, whatever the machine."""
    tab.open(file, 1280)
    tall = {"width": 1280, "height": 2400, "deviceScaleFactor": 1, "mobile": False}
    tab("Emulation.setDeviceMetricsOverride", **tall)  # every chart is in view
    tab.evaluate("document.querySelector('#boltzmann .slider').focus({preventScroll: true})")
    tab.evaluate("new Promise((done) => setTimeout(done, 50))")
    tab.evaluate(
        """(() => { window.work = {exp: 0, draw: 0};
        const exp = Math.exp; Math.exp = (x) => { work.exp += 1; return exp(x); };
        const kind = CanvasRenderingContext2D.prototype;
        for (const name of Object.getOwnPropertyNames(kind)) {
          const call = Object.getOwnPropertyDescriptor(kind, name).value;
          if (typeof call === "function")
            kind[name] = function (...args) { work.draw += 1; return call.apply(this, args); };
        } })(), 1"""
    )
    tab.press("ArrowRight")
    work = tab.evaluate("work")
    assert 5_000 < work["exp"] < 30_000, work
    assert 500 < work["draw"] < 3_000, work


def test_the_taxi_turns_with_omega(tab, file):
    tab.open(file, 1280, fragment="taxi=0,0")
    said = "document.querySelector('#gallery .said').textContent"
    block = taxi()
    for level, picked in ((0, 0), (12, 5)):
        tab.open(file, 1280, fragment=f"taxi={level},{picked}")
        shown = tab.evaluate("document.querySelector('#gallery .omega').textContent")
        assert float(shown) == pytest.approx(block["omegas"][level], rel=1e-2)
        x, y = tab.within("#gallery .grid", 0.5 / 7, 0.5 / 6)
        tab("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        north, *_ = block["levels"][level]["policy"][4 * picked : 4 * picked + 4]
        temperature = block["levels"][level]["temperature"][picked]
        text = tab.evaluate(said)
        assert f"Row 1, column 1: north {north} %" in text
        assert f"inverse temperature {temperature}," in text


def test_a_landing_is_there_only_with_its_data_and_is_drawn_from_it(tab, file, tmp_path):
    recorded = next(block for block in exhibits() if block["kind"] == "landing")
    write_page(tmp_path / "bare.html")
    tab.open(tmp_path / "bare.html", 1280)
    assert tab.evaluate("document.querySelectorAll('.sky, .grid').length") == 0
    tab.open(file, 1280)
    tab.centre(".sky")
    ink = "document.querySelector('.sky').toDataURL()"
    last = tab.evaluate(ink)  # it shows all of the way
    assert tab.evaluate("document.querySelector('.time').value") == str(len(recorded["frames"]) - 1)
    tab.evaluate("document.querySelector('.time').focus()")
    tab.press("Home")
    assert tab.evaluate(ink) != last
    assert f"return of {recorded['return']}" in tab.evaluate("document.body.innerText")


def test_a_block_of_another_schema_is_not_shown(tab, tmp_path):
    write_page(tmp_path / "page.html", [{**taxi(), "schema": 2}])
    tab.open(tmp_path / "page.html", 1280)
    assert tab.evaluate("document.querySelectorAll('.grid').length") == 0
