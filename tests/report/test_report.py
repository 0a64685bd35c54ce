"""The report is one page that is whole, escaped, needs nothing else, and is fit for any reader."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.browser import browser, check_page
from mellowmax.experiments import ITEMS, Finished, Plan
from mellowmax.experiments.item import Caption, Claim, Outcome, Verdict
from mellowmax.experiments.style import COLOURS, figure, styled
from mellowmax.report import write_markdown, write_page
from mellowmax.report.page import _duration

REPRODUCED = Path(__file__).parents[2] / "reproduction" / "report.html"
VOID = {"meta", "img", "br", "hr", "link", "input"}
WINDOWS = [(390, "light"), (390, "dark"), (320, "light"), (1280, "light"), (1280, "dark")]


@dataclasses.dataclass(frozen=True)
class Config:
    runs: int = 25
    omegas: tuple[float, ...] = tuple(0.1 * i for i in range(40))
    start: float | None = None


def entry(home, name, title, claims, *, columns=1, rows=400, deviations=(), kept=""):
    """A made-up item with a real figure and a real table."""
    home.mkdir(parents=True, exist_ok=True)
    x = np.linspace(0.0, 10.0, rows)
    with styled():
        drawn, axes = figure(columns)
        for ax in np.atleast_1d(axes):
            ax.plot(x, np.sin(x), label="mellowmax", **COLOURS["mellowmax"])
            ax.plot(x, np.cos(x), label="Boltzmann", **COLOURS["boltzmann"])
            ax.set(xlabel="episodes", ylabel="return")
            ax.legend()
        drawn.savefig(home / f"{name}.svg")
        drawn.savefig(home / f"{name}.png", dpi=50)
    table = pd.DataFrame({"operator": "mellowmax", "seed": np.arange(rows), "return_": np.sin(x)})
    for extra in range(9):
        table[f"a_rather_long_column_{extra}"] = x * extra
    table.to_parquet(home / f"{name}.parquet")
    item = SimpleNamespace(
        TITLE=title,
        SOURCE="Figure 9, section 5.2",
        RULE="Reproduced if the confidence intervals of the two best values overlap.",
        CAPTIONS={"returns": Caption(f"Ours of {name} is above.", f"Two waves of {name}.")},
        COLUMNS={"runs": {"operator": "the softmax", "seed": "of the run", "return_": "its mean"}},
        SETTINGS={"runs": "runs of a setting", "omegas": "omegas", "start": "start"},
        DEVIATIONS=deviations,
    )
    verdict = Verdict(
        claims,
        f"A sentence on what the claims of {name} add up to, in plain words.",
        (f"Beside the claims of {name}, one <b>thing</b>.", "Another."),
        in_short=f"The claims of {name} <b>in short</b>.",
        kept=kept,
    )
    figures, tables = {"returns": home / f"{name}.svg"}, {"runs": home / f"{name}.parquet"}
    planned = Plan(name, "quick", item, Config(), {}, 0)
    return Finished(planned, verdict, tables, figures, 200.4, "a CPU with 2 cores")


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    home = tmp_path_factory.mktemp("report") / "items"
    long = "at_a_place_without_any_space_" * 6
    yes = Claim("Mellowmax reaches a return of 9.", "about 9", "9.02 (8.87 to 9.17)", True)
    no = Claim("Its best ω <b>beats</b> β & ε", "by 10 %", f"by -2 % (-6 % to 3 %) {long}", False)
    open_ = Claim("In the end it wins.", "by 17", "not tested", None)
    return [
        entry(home, "fig2", "Boltzmann's SARSA does not settle", (yes, yes), columns=2),
        entry(
            home, "fig9", "Returns <i>on</i> the taxi", (yes, no), deviations=("One | two", "$x$")
        ),
        entry(home, "table1", "Planning", (no,), columns=3, rows=3, deviations=("A third.",)),
        entry(home, "fig11", "Landing", (yes, no, open_), kept="9 runs of another <i>machine</i>"),
    ]


@pytest.fixture(scope="module")
def page(entries):
    path = entries[0].figures["returns"].parent.parent / "report.html"
    write_page(path, entries, missing=("fig4", "<fig5>"), version="1.2")
    return path


@pytest.fixture
def markdown(tmp_path):
    """The Markdown of entries."""

    def write(entries, **options):
        write_markdown(tmp_path / "report.md", entries, version="1.2", **options)
        return (tmp_path / "report.md").read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="module")
def tab():
    """One browser for all pages."""
    with browser() as tab:
        yield tab


class Reader(HTMLParser):
    """Keeps every tag, and checks that each is closed by its own end."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.text.append(data)

    def all(self, *names):
        return [attributes for tag, attributes, _ in self.tags if tag in names]


@pytest.fixture(scope="module")
def read(page):
    return Reader(page.read_text(encoding="utf-8"))


def test_the_page_is_well_formed_and_semantic(read):
    assert read.all("html")[0]["lang"] == "en"
    assert (
        "width=device-width"
        in {tag.get("name"): tag for tag in read.all("meta")}["viewport"]["content"]
    )
    levels = [int(tag[1]) for tag, _, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip([0, *levels], levels, strict=False))
    assert all("scope" in attributes for attributes in read.all("th"))
    ids = [attributes["id"] for _, attributes, _ in read.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    inside = {a["href"][1:] for a in read.all("a") if a["href"].startswith("#")}
    assert inside <= set(ids)
    assert not read.all("script")
    assert len(read.all("img")) == 4
    assert len(read.all("figcaption")) == len(read.all("figure")) == 5  # and the drawing


def test_a_figure_has_its_caption_and_alt_text(entries, read):
    text = "".join(read.text)
    for e, image in zip(entries, read.all("img"), strict=True):
        assert image["alt"] == e.plan.item.CAPTIONS["returns"].alt
        assert e.plan.item.CAPTIONS["returns"].text in text


def test_the_page_says_what_it_is_about_before_it_uses_the_words(read):
    text = " ".join("".join(read.text).split())
    for word in ("Non-expansion", "GVI, generalised value iteration", "Sweep", "Fixed point"):
        assert text.index(word) < text.index("Verdicts An item is reproduced")
    assert len(read.all("math")) == 4
    [drawing] = [svg for svg in read.all("svg") if svg.get("role") == "img"]
    assert drawing["aria-labelledby"] in {tag.get("id") for tag in read.all("title")}


def test_the_contents_show_the_verdicts(entries, read):
    inside = [a for tag, a, parents in read.tags if tag == "a" and "nav" in parents]
    assert [a.get("title") for a in inside[2:-1]] == [e.verdict.outcome for e in entries]


def test_the_page_loads_nothing_from_elsewhere(page, read):
    for tag, attributes, _ in read.tags:
        for name, value in attributes.items():
            if "://" in (value or "") and name != "srcdoc":  # which tests/explorer looks into
                assert (tag, name) == ("a", "href")
                assert value.startswith("https://arxiv.org/")
    assert all(a["src"].startswith("data:image/svg+xml;base64,") for a in read.all("img"))
    assert not re.search(r"url\((?!#)|@import", page.read_text(encoding="utf-8"))


def test_a_page_that_travels_alone_has_its_small_tables_with_it(entries, page, read):
    links = [a["href"] for a in read.all("a")]
    assert all(link.startswith(("#", "https://arxiv.org/", "data:text/csv")) for link in links)
    saved = {a["download"]: a["href"] for a in read.all("a") if "download" in a}
    assert set(saved) == {"table1.csv"}  # of 3 rows; the others are large
    data = base64.b64decode(saved["table1.csv"].split(",", 1)[1])
    pd.testing.assert_frame_equal(
        pd.read_csv(io.BytesIO(data)),
        pd.read_parquet(entries[2].tables["runs"]),
        check_dtype=False,
    )
    text = "".join(read.text)
    for e in entries:
        assert e.tables["runs"].relative_to(page.parent).as_posix() in text


def test_the_verdicts_come_first_and_every_item_is_there(entries, page, read):
    text = " ".join("".join(read.text).split())
    first = text[: text.index("Claims")]
    table = first[: first.index("Missing or not finished")]
    for e in entries:
        assert e.verdict.in_short in table
        assert e.verdict.summary not in table
        assert e.verdict.summary in text
        assert e.verdict.beside[0] not in first
        assert e.verdict.beside[0] in text
    assert "Of 4 finished items: 1 reproduced, 1 partly reproduced, 1 not reproduced, " in first
    assert "1 undecided." in first
    for count in ("reproduced 2 of 2 claims", "partly reproduced 1 of 2 claims"):
        assert count in first
    assert "not reproduced 0 of 1 claimThe" in first  # the next cell
    assert "undecided 1 of 3 claims" in first
    assert "Missing or not finished: fig4, <fig5>." in first
    html = page.read_text(encoding="utf-8")
    assert html.index("<table") < html.index('<div class="frame"')
    for word, kind in (
        (Outcome.REPRODUCED, "good"),
        (Outcome.PARTLY, "half"),
        (Outcome.NOT, "bad"),
        (Outcome.UNDECIDED, "open"),
    ):
        assert len(re.findall(f'badge {kind}"><svg.*?</svg>{word}<', html)) == 2 + (kind == "open")
    for e in entries:
        item = e.plan.item
        for said in (item.TITLE, item.RULE, e.device, *item.DEVIATIONS, "3 min 20 s"):
            assert said in text
        assert f"mellowmax reproduce {e.plan.name} --scale quick --out {page.parent}" in text
        for claim in e.verdict.claims:
            assert f"{claim.statement}" in text
    assert "0, 0.1, 0.2, 0.3, 0.4, …, 3.9 (40 values)" in text
    assert "The first 8 of 400 rows." in text
    assert "runs: 3 rows of 12 columns" in text


def test_the_scale_and_what_verdicts_mean_are_said_before_the_verdicts(entries, markdown, read):
    other = dataclasses.replace(entries[0].plan, scale="paper")
    both = markdown([dataclasses.replace(entries[0], plan=other), *entries[1:]])
    for text in (" ".join("".join(read.text).split()), markdown(entries)):
        top = text[: text.index("Item")]
        assert "At the quick scale, which takes minutes on a laptop: fig2, fig9, table1" in top
        assert "fig11 (with 9 runs of another " in top
        assert "An item is reproduced if every claim of the paper holds here" in top
        assert "A claim is mixed if" in top
    assert "At the paper scale, the paper's own counts where it has any: fig2; at the quick" in both


def test_text_is_escaped(page, read):
    assert not read.all("b", "i")
    assert "Its best ω &lt;b&gt;beats&lt;/b&gt; β &amp; ε" in page.read_text(encoding="utf-8")


def test_deviations_are_numbered_within_an_item(entries, markdown, read):
    numbers = [li["id"] for li in read.all("li") if "id" in li]
    assert numbers == [f"item-{x}" for x in ("fig9-deviation-1", "fig9-deviation-2")] + [
        "item-table1-deviation-1"
    ]
    assert all("start" not in ol for ol in read.all("ol"))
    text = markdown(entries)
    assert [int(n) for n in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == [1, 2, 1]


def test_the_page_is_the_same_again_and_whole_or_not_at_all(entries, page, tmp_path):
    before = page.read_bytes()
    write_page(page, entries, missing=("fig4", "<fig5>"), version="1.2")
    assert page.read_bytes() == before
    gone = dataclasses.replace(entries[0], figures={"returns": tmp_path / "gone.svg"})
    with pytest.raises(FileNotFoundError):
        write_page(page, [gone], version="1.2")
    assert page.read_bytes() == before
    assert not list(page.parent.glob(".mellowmax-*"))


def test_a_page_of_nothing_is_well_formed(tmp_path, markdown):
    write_page(tmp_path / "report.html", [], version="1.2")
    read = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Of 0 finished items" in "".join(read.text)
    assert "# Reproduction" in markdown([])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.42, "0.42 s"),
        (12.3, "12 s"),
        (59.8, "1 min 0 s"),
        (200.4, "3 min 20 s"),
        (3700, "1 h 1 min"),
        (7300, "2 h 1 min"),
    ],
)
def test_times_in_words(seconds, words):
    assert _duration(seconds) == words


def test_markdown_is_a_table_of_verdicts_and_one_of_claims_for_each_item(entries, markdown):
    text = markdown(entries, missing=("fig4",))
    text = re.sub("<details.*?</details>", "", text, flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert [table.count("\n") - 2 for table in tables] == [4, 2, 2, 1, 3]
    for table, columns in zip(tables, (3, 4, 4, 4, 4), strict=True):
        for line in table.splitlines():
            assert len(re.findall(r"(?<!\\)\|", line)) == columns + 1
    [line] = [line for line in tables[0].splitlines() if "fig9" in line]
    assert line == "| [fig9](#fig9) | partly&nbsp;reproduced | 1&nbsp;of&nbsp;2 |"
    assert "\n- [fig9](#fig9): The claims of fig9 &lt;b&gt;in short&lt;/b&gt;.\n" in text
    assert text.count("A sentence on what the claims of fig9 add up to") == 1
    assert "at the quick scale: **partly reproduced, 1 of 2 claims**." in text
    assert "at the quick scale, with 9 runs of another &lt;i&gt;machine&lt;/i&gt;: **" in text
    assert r"&lt;b&gt;beats&lt;/b&gt; β &amp; ε" in text
    assert r"One \| two" in text
    assert "$" not in text
    assert "Missing or not finished: fig4." in text
    assert text.count("one &lt;b&gt;thing&lt;/b&gt;.\n\nAnother.\n") == len(entries)


def test_markdown_has_the_figures_with_their_captions(entries, markdown, tmp_path):
    image = r"^\[!\[Two waves of (\w+)\.\]\((.*)\)\]\(\2\)\n\n\*Ours of (\w+) is above\.\*$"
    shown = re.findall(image, markdown(entries), re.MULTILINE)
    assert [name for name, _, _ in shown] == [e.plan.name for e in entries]
    for (_, place, _), e in zip(shown, entries, strict=True):
        assert (tmp_path / place).resolve() == e.figures["returns"].resolve()


def test_small_tables_are_shown_whole(entries, markdown, tmp_path):
    """A table of 80 rows on the page and in Markdown, one of 81 on the page alone, in part."""
    small, large = (entry(tmp_path, f"of{rows}", "T", (), rows=rows) for rows in (80, 81))
    text = markdown([small, large])
    assert re.findall(r"<summary>(.*)</summary>", text) == ["runs: 80 rows"]
    (inside,) = re.findall(r"<details.*?</details>", text, re.DOTALL)
    lines = re.findall(r"^\| .* \|$", inside, re.MULTILINE)
    assert lines[0].startswith(r"| operator | seed | return\_ |")
    assert lines[2].startswith("| mellowmax | 0 | 0 |")
    assert lines[-1].startswith(f"| mellowmax | 79 | {np.sin(10.0):.5g} |")
    assert len(lines) == 82
    assert r"*Columns.* operator: the softmax; seed: of the run; return\_: its mean" in inside
    write_page(tmp_path / "report.html", [small, large], version="1.2")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"The first \d+ of \d+ rows", html) == ["The first 8 of 81 rows"]
    assert f">{np.sin(10.0):.5g}<" in html


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_page_in_chromium(tab, page, width, scheme):
    found = check_page(tab, page, width, scheme)
    assert found["complaints"] == []
    assert found["loads"] == [page.resolve().as_uri()]
    assert found["images"] == 4
    assert found["broken_images"] == []
    assert found["client_width"] == width
    assert found["scroll_width"] <= width
    assert found["overflowing"] == []
    assert found["contrast"] >= 4.5, found["contrast_where"]  # WCAG AA
    assert found["hidden_without_a_sign"] == []
    filters = tab.evaluate("[...document.images].map(i => getComputedStyle(i).filter)")
    assert all(("invert" in one) == (scheme == "dark") for one in filters)


def test_the_explorer_is_in_the_page_and_works_there(tab, page):
    tab.open(page, 1280)
    tab.evaluate("document.querySelector('iframe').scrollIntoView()")
    said = tab.evaluate(
        """new Promise((done) => { const look = () => {
        const inner = document.querySelector("iframe").contentDocument;
        const said = inner?.getElementById("sentence")?.textContent;
        if (!said) return setTimeout(look, 20);
        inner.querySelector("#steps li:nth-child(3) a").click();
        setTimeout(() => done([said, inner.getElementById("sentence").textContent,
                               inner.location.href, location.href]), 200); }; look(); })"""
    )
    assert "three fixed points" in said[0]
    assert "The values did not return" in said[1]
    assert said[2] == "about:srcdoc#loop=1"
    assert said[3] == page.resolve().as_uri()
    assert tab.complaints() == []


def test_print_is_light_and_without_what_only_a_screen_needs(tab, page, tmp_path):
    tab.open(page, 720, "dark", "print")
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    shown = tab.evaluate(
        "[...document.querySelectorAll('nav, details dl')].filter(n => n.offsetHeight).length"
    )
    tab.pdf(tmp_path / "report.pdf")
    assert colour == "rgb(255, 255, 255)"
    assert shown == 0
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_the_check_of_a_page_finds_what_is_wrong(tab, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("""<!DOCTYPE html><html lang="en"><head><title>bad</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><p class="wide" style="width: 700px; color: #aaa">wide</p><img src="gone.png" alt="gone">
<script>throw new Error("broken")</script></body></html>""")
    found = check_page(tab, bad, 390)
    assert found["scroll_width"] > 390
    assert found["overflowing"] == ["p.wide"]
    assert found["broken_images"] == ["gone"]
    assert len(found["complaints"]) >= 2
    assert len(found["loads"]) == 2
    assert found["contrast"] < 3


@pytest.mark.skipif(
    not REPRODUCED.exists(), reason="`make reproduce` has not made a report to look at"
)
@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_reproduced_page_in_chromium(tab, width, scheme):
    made = [path.name for path in (REPRODUCED.parent / "cells").iterdir()]
    assert {*made} <= {*ITEMS}
    found = check_page(tab, REPRODUCED, width, scheme)
    assert found["complaints"] == []
    assert found["loads"] == [REPRODUCED.resolve().as_uri()]
    assert found["broken_images"] == []
    assert found["images"] >= len(made)
    assert found["scroll_width"] <= width
    assert found["overflowing"] == []
    assert found["contrast"] >= 4.5, found["contrast_where"]
    for name in made:
        assert f"reproduce {name} --scale" in found["text"]
