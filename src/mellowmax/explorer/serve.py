"""The page on the loopback address: one path, for browsers of this machine alone.

A page of another site could have its name resolve to 127.0.0.1 and read from here in the reader's
browser. Such a request has that site's name as its Host, and is refused.
"""

from __future__ import annotations

import errno
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .._common import checks

__all__ = ["PageServer"]

ADDRESS = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    """Serves one page at `url`, from when it is made until it is closed."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, text: str, port: int = 0) -> None:
        """Take a port.

        Args:
            text: the page.
            port: 0 for one that is free.

        Raises:
            ValueError: for a port that is none, that is in use, or that may not be taken.
        """
        self.body = checks.text("text", text).encode()
        port = checks.whole("port", port, 0, 65535)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            rule = "`port` must be one that is free" if in_use else "`port` must be one to take"
            raise ValueError(f"{rule}, got {port}: {error.strerror}") from error
        self.port: int = self.server_address[1]
        self.url = f"http://{ADDRESS}:{self.port}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "mellowmax"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        host = self.headers.get("Host", "")
        if host not in {f"{name}:{self.server.port}" for name in (ADDRESS, "localhost")}:
            self._refuse(
                HTTPStatus.MISDIRECTED_REQUEST, "This server answers to this machine only."
            )
        elif self.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "There is one page here, at /.")
        else:
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.body, body)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{sentence}\n".encode(), True)

    def _send(self, status: HTTPStatus, kind: str, content: bytes, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address is all that a reader needs."""
