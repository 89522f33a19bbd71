"""A server that shows the explorer to this machine alone, for as long as the program runs."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ipe.base.numbers import whole_number
from ipe.base.words import refusing

HOST = "127.0.0.1"
HTTP_PORT = 80
"""The port of an address that names no port."""


class ExplorerServer(ThreadingHTTPServer):
    """Serves one page at http://127.0.0.1:port/ and nothing else.

    Args:
        page: the HTML text.
        port: the port, or 0 for any that is free.

    Example:
        >>> with ExplorerServer("<!doctype html>", 0) as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True  # a browser that keeps its connection open does not keep the program
    allow_reuse_address = True

    def __init__(self, page: str, port: int = 0) -> None:
        whole_number(port, "port", 0, 65535)
        self.page = page.encode()
        with refusing(f"cannot listen on {HOST}, port {port}"):
            super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that hangs up is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version = "ipe"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send the page's headers."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        port = self.server.port
        ours = {f"{host}:{port}" for host in (HOST, "localhost")}
        if port == HTTP_PORT:  # browsers leave port 80 out of the header
            ours |= {HOST, "localhost"}
        if self.headers.get("Host") not in ours:
            # Another site's name that leads to this address: its scripts are not to read the page.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        if self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        if body:
            self.wfile.write(self.server.page)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request."""
