"""Texts that come from a file, made safe to print."""

from __future__ import annotations

__all__ = ["shortened", "visible"]

MOST_SHOWN = 60
"""The most characters of a text that a message shows."""


def visible(text: str) -> str:
    r"""A text in one line, with what cannot be seen written out as Python does in a literal.

    That is every control character, line break, mark of the direction of writing and lone
    surrogate. A text from a file can neither move the cursor nor forge a row.

    Examples:
        >>> print(visible("Mellowmax\x1b[2J\nstatus  converged"))
        Mellowmax\x1b[2J\nstatus  converged
        >>> print(visible("naïve, 最大"))
        naïve, 最大
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """The beginning of a long text, for a message.

    Examples:
        >>> shortened("Mellowmax", 6)
        'Mellow...'
    """
    return text if len(text) <= most else f"{text[:most]}..."
