"""Formulas of the pages as MathML, which a browser shows without a script."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from latex2mathml.commands import FUNCTIONS
from latex2mathml.converter import convert

__all__ = ["with_mathml"]

NAMES = {name.removeprefix("\\") for name in FUNCTIONS}
PRIMES = {"\u2032", "\u2033", "\u2034", "\u2057"}
THIN = "0.167em"
OPENING = {"(", "[", "{", "|"}


def with_mathml(markdown: str) -> str:
    """A page with `$$...$$` and `$...$` replaced, but not in code."""
    parts = re.split(r"(```.*?```|`[^`]*`)", markdown, flags=re.DOTALL)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\$\$(.+?)\$\$", _display, parts[i], flags=re.DOTALL)
        parts[i] = re.sub(r"\$([^$]+?)\$", _inline, parts[i])
    return "".join(parts)


def _inline(match: re.Match[str]) -> str:
    return f"<span>{_formula(match[1], 'inline')}</span>"  # a line may not begin with `math` itself


def _display(match: re.Match[str]) -> str:
    return _formula(match[1].strip(), "block")


def _formula(latex: str, display: str) -> str:
    """What latex2mathml makes of it, with room beside `log` and primes where fonts expect them."""
    # A page needs no namespace.
    root = fromstring(re.sub(' xmlns="[^"]*"', "", convert(latex, display=display)))
    for element in list(root.iter()):
        _lower_prime(element)
        for i, one in enumerate(element):
            name = one[0] if one.tag in ("msub", "msup", "msubsup") else one
            if name.tag == "mi" and name.text in NAMES:
                after = element[i + 1] if i + 1 < len(element) else None
                _make_room(name, i > 0 and element.tag in ("mrow", "math"), after)
    return tostring(root, encoding="unicode")


def _make_room(name: Element, follows: bool, after: Element | None) -> None:
    """A function's name is an operator to MathML, with a thin space where TeX has one."""
    opens = after is None or after.text in OPENING
    name.tag = "mo"
    name.set("lspace", THIN if follows else "0")
    name.set("rspace", "0" if opens else THIN)


def _lower_prime(script: Element) -> None:
    """A prime stands on the line: it is raised by its font, and as an exponent it would be twice.

    So it is in the fonts of texts. Those of mathematics differ from each other.
    """
    if script.tag not in ("msup", "msubsup") or script[-1].text not in PRIMES:
        return
    *base, prime = list(script)
    script.clear()
    if len(base) > 1:
        SubElement(script, "msub").extend(base)
    else:
        script.extend(base)
    script.tag = "mrow"
    prime.tag = "mo"
    prime.attrib.update(lspace="0", rspace="0", style="font-family: serif")
    script.append(prime)
