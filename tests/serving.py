"""A small web server on this machine, which can also break connections."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    site: "Site"

    def do_GET(self):
        site = self.site
        asked = self.headers.get("Range")
        site.asked.append((self.path, asked))
        body = site.files.get(self.path)
        if body is None:
            return self.send_error(404)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if asked and site.ranges:
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            body = body[start:]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: site.cuts.pop(0)] if site.cuts else body)
        return None

    def log_message(self, format, *_):
        pass


class Site:
    """`files` by path; `cuts` says after how many bytes each of the next answers breaks off."""

    def __init__(self):
        self.files, self.cuts, self.ranges, self.asked = {}, [], True, []
        handler = type("OfThisSite", (Handler,), {"site": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    site = Site()
    yield site
    site.close()
