"""A page in a real headless Chromium, driven through its DevTools pipe."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

TIMEOUT = 60.0  # seconds, for one answer of the browser

# What Chromium reads commands from and writes answers to are the files 3 and 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD_CLOEXEC, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

KEYS = {"Tab": 9, "Enter": 13, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36}
KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}  # Windows' numbers

# Every text against the first opaque colour behind it, by WCAG's formula.
LOOK = """
(() => {
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const name = (node) => node.tagName.toLowerCase() + (node.className && "." + node.className);
  let contrast = {ratio: 21, where: null};
  const nodes = [...document.body.querySelectorAll("*")].filter((n) => n.getClientRects().length);
  for (const node of nodes) {
    if (![...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim())) continue;
    const pair = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < contrast.ratio) contrast = {ratio, where: name(node)};
  }
  const scrolls = (node) => {
    for (node = node.parentElement; node; node = node.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(node).overflowX)) return true;
    return false;
  };
  const width = document.documentElement.clientWidth;
  const images = [...document.images];
  return {
    client_width: width,
    scroll_width: document.documentElement.scrollWidth,
    overflowing: nodes.filter((n) => n.getBoundingClientRect().right > width + 1 && !scrolls(n))
      .map(name),
    hidden_without_a_sign: nodes
      .filter((n) => ["auto", "scroll"].includes(getComputedStyle(n).overflowX))
      .filter((n) => n.scrollWidth > n.clientWidth + 1 && width < 500)
      .filter((n) => getComputedStyle(n.parentElement, "::before").content === "none")
      .map(name),
    images: images.length,
    broken_images: images.filter((i) => !i.complete || !i.naturalWidth).map((i) => i.alt),
    contrast: contrast.ratio,
    contrast_where: contrast.where,
    text: document.body.innerText,
  };
})()
"""


def chromium():
    """Chromium's path; the test is skipped where there is none, or fails if one is required."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    reason = "Chromium is not installed (`apt-get install chromium`)"
    if os.environ.get("MELLOWMAX_REQUIRE_CHROMIUM"):
        pytest.fail(f"{reason}, and MELLOWMAX_REQUIRE_CHROMIUM is set")
    return pytest.skip(reason)


class Tab:
    """The one tab of a running browser."""

    def __init__(self, requests, answers):
        self.requests, self.answers = requests, answers
        self.rest, self.events, self.last = b"", [], 0
        self.session = None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method, **params):
        """Send a command and wait for its answer; events that come before it are kept."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.requests, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self, deadline):
        while b"\0" not in self.rest:
            ready, _, _ = select.select(
                [self.answers], [], [], max(0.0, deadline - time.monotonic())
            )
            part = os.read(self.answers, 1 << 20) if ready else b""
            assert part, "Chromium ended or does not answer"
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message

    def open(self, path, width, scheme="light", media="screen", fragment="", motion="reduce"):
        """Load a file as on a screen `width` pixels wide, a phone's if it is narrow.

        `motion` is what the reader prefers: `"reduce"` or `"no-preference"`.
        """
        phone = width < 600
        self("Emulation.setDeviceMetricsOverride", width=width, height=844 if phone else 900,
             deviceScaleFactor=1, mobile=phone)  # fmt: skip
        self("Emulation.setTouchEmulationEnabled", enabled=phone)
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.features = [{"name": name, "value": value} for name, value in wishes.items()]
        self("Emulation.setEmulatedMedia", media=media, features=self.features)
        if fragment:
            self.load("about:blank")  # or another fragment of the same page would load nothing
        self.load(Path(path).resolve().as_uri() + (f"#{fragment}" if fragment else ""))

    def load(self, url):
        """Go to an address and wait until it is loaded."""
        self.events.clear()
        self("Page.navigate", url=url)
        deadline = time.monotonic() + TIMEOUT
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            self.receive(deadline)

    def evaluate(self, script):
        answer = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key):
        """Press a key, by the name that the page sees, and let it go."""
        names = {" ": "Space", "Tab": "Tab", "Enter": "Enter"}
        text = key if len(key) == 1 else "\r" if key == "Enter" else None
        given = {"key": key, "code": names.get(key, key)}
        given["windowsVirtualKeyCode"] = KEYS.get(key, ord(key[0]))
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self("Input.dispatchKeyEvent", **down, **given)
        self("Input.dispatchKeyEvent", type="keyUp", **given)

    def drag(self, *points):
        """Drag the mouse from one point of the window to the next; let it go at the last."""
        for i, (x, y) in enumerate(points):
            if i == 0:
                self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
                self("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left",
                     buttons=1, clickCount=1)  # fmt: skip
            else:
                self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left",
                     buttons=1)  # fmt: skip
        self(
            "Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1
        )

    def swipe(self, *points):
        """Move a finger from one point of the window to the next; a tap if there is one point."""
        for i, (x, y) in enumerate(points):
            kind = "touchMove" if i else "touchStart"
            self("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
        self("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def centre(self, selector):
        """The middle of an element, in view, as a point of the window."""
        return self.within(selector, 0.5, 0.5)

    def within(self, selector, across, down):
        """A point of an element that is brought into view, by shares of its width and height."""
        box = self.evaluate(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}}); const b = e.getBoundingClientRect();
            return [b.x, b.y, b.width, b.height]; }})()"""
        )
        return box[0] + across * box[2], box[1] + down * box[3]

    def screenshot(self, target, whole=True):
        """What the page looks like, as a PNG: all of it, or its first screen."""
        answer = self("Page.captureScreenshot", captureBeyondViewport=whole)
        if whole:
            size = self("Page.getLayoutMetrics")["cssContentSize"]
            answer = self("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={**size, "scale": 1})  # fmt: skip
        Path(target).write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, target):
        """The page as it is printed on A4."""
        self("Emulation.setEmulatedMedia", media="print", features=self.features)
        answer = self("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        Path(target).write_bytes(base64.b64decode(answer["data"]))

    def complaints(self):
        """Errors and warnings of the console, exceptions, and loads that failed."""
        found = []
        for name, params in self.events:
            if name == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str([argument.get("value") for argument in params["args"]]))
            elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif name == "Network.loadingFailed":
                found.append(params["errorText"])
        return found

    def loads(self):
        """Every address that was loaded and is not inside the page itself."""
        urls = [p["request"]["url"] for n, p in self.events if n == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith("data:")]


@contextlib.contextmanager
def browser():
    """A browser with a profile of its own, ended and cleared away at the end."""
    program = chromium()
    with tempfile.TemporaryDirectory(prefix="mellowmax-", ignore_cleanup_errors=True) as profile:
        commands, requests = os.pipe()
        answers, results = os.pipe()
        launch = [sys.executable, "-I", "-c", LAUNCH, str(commands), str(results)]
        process = subprocess.Popen(
            [*launch, program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(commands, results),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(results)
        try:
            tab = Tab(requests, answers)
            yield tab
            tab.session = None
            tab("Browser.close")
            process.wait(TIMEOUT)
        finally:
            process.kill()
            process.wait()
            os.close(requests)
            os.close(answers)


def check_page(tab, path, width=390, scheme="light", media="screen", shot=None):
    """What a page is like in Chromium.

    Args:
        tab: of a `browser`, which can check one page after another.
        path: the HTML file.
        width: of the window, in pixels.
        scheme: `"light"` or `"dark"`, what the reader prefers.
        media: `"screen"` or `"print"`.
        shot: a PNG file for a picture of the whole page.

    Returns:
        `complaints` (of the console, and loads that failed), `loads` (addresses that were loaded,
        the page itself first), `images` and `broken_images`, `client_width`, `scroll_width` and
        `overflowing` (what is cut at the right edge and does not scroll), `hidden_without_a_sign`
        (what scrolls in a narrow window, and nothing says so), `contrast` (the least of
        any text) and `contrast_where`, and the page's `text`.
    """
    tab.open(path, width, scheme, media)
    found = tab.evaluate(LOOK)
    if shot is not None:
        tab.screenshot(shot)
    return {"complaints": tab.complaints(), "loads": tab.loads(), **found}
