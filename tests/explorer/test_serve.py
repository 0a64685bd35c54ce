"""The page is served to this machine alone, at one path."""

from __future__ import annotations

import http.client
import threading

import pytest

from mellowmax.explorer import PageServer

TEXT = "<!DOCTYPE html><title>π</title>"


@pytest.fixture(scope="module")
def server():
    with PageServer(TEXT) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(server, method="GET", path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_the_page_and_its_headers(server):
    answer, body = ask(server)
    assert (answer.status, body) == (200, TEXT)
    assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
    assert answer.getheader("Content-Length") == str(len(TEXT.encode()))
    assert answer.getheader("Cache-Control") == "no-store"
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, Host=f"localhost:{server.port}")[0].status == 200


def test_head_has_no_body(server):
    answer, body = ask(server, "HEAD")
    assert (answer.status, body) == (200, "")
    assert answer.getheader("Content-Length") == str(len(TEXT.encode()))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "evil.example:80", "", "[::1]:80"]
)
def test_a_foreign_host_is_refused_in_a_sentence(server, host):
    """Also one that gives the right port: a name of another site can lead to this machine."""
    answer, body = ask(server, Host=host.format(server.port))
    assert answer.status == 421
    assert body == "This server answers to this machine only.\n"


@pytest.mark.parametrize(
    "path", ["/favicon.ico", "/../../etc/passwd", "/./", "/?x=1", "/page.html"]
)
def test_there_is_one_path(server, path):
    answer, body = ask(server, path=path)
    assert answer.status == 404
    assert body == "There is one page here, at /.\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_done_to_it(server, method):
    assert ask(server, method)[0].status == 501


def test_a_port_that_cannot_be_had(server):
    with pytest.raises(ValueError, match=f"`port` must be one that is free, got {server.port}"):
        PageServer(TEXT, server.port)
    with pytest.raises(ValueError, match=r"`port` must be .* \[0, 65535\], got 70000"):
        PageServer(TEXT, 70000)
