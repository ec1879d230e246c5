"""A small hub on the loopback address: the file and API routes that huggingface_hub and datasets ask for, over one folder.

``root/datasets/OWNER/NAME/…`` and ``root/models/OWNER/NAME/…`` are repositories with one revision, whatever it is called.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """The server; ``asked`` lists every request's method and path."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.asked: list[str] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        self.server.asked.append(f"{self.command} {self.path}")

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(body)

    def _answer(self, body: bytes = b"") -> None:
        path = urlsplit(self.path).path  # a revision's own slashes are quoted: refs%2Fconvert%2Fparquet
        if match := re.fullmatch(r"/api/(datasets|models)/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(?:/(.+))?)?", path):
            kind, repository, what, _, under = match.groups()
            return self._api(self.server.root / kind / repository, repository, what, unquote(under or ""), body)
        if match := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            kind, repository, name = match.groups()
            return self._file(self.server.root / (kind or "models") / repository / unquote(name))
        return self._send(404, b"{}", {})

    def _api(self, folder: Path, repository: str, what: str | None, under: str, body: bytes) -> None:
        if not folder.is_dir():
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if what == "tree":
            recursive = "recursive=true" in self.path.lower()
            listed = (folder / under).rglob("*") if recursive else (folder / under).glob("*")
            return self._json([_entry(path, folder) for path in sorted(listed)])
        if what == "paths-info":
            wanted = parse_qs(body.decode()).get("paths", []) if body[:1] != b"{" else json.loads(body)["paths"]
            return self._json([_entry(folder / name, folder) for name in wanted if (folder / name).exists()])
        siblings = [{"rfilename": path.relative_to(folder).as_posix()} for path in sorted(folder.rglob("*")) if path.is_file()]
        return self._json({"id": repository, "sha": COMMIT, "private": False, "tags": [], "downloads": 0, "siblings": siblings})

    def _file(self, path: Path) -> None:
        if not path.is_file():
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        content = path.read_bytes()
        etag = hashlib.sha1(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if span:
            start, end = int(span[1]), int(span[2] or len(content) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
            return self._send(206, content[start : end + 1], headers)
        return self._send(200, content, headers)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-Repo-Commit": COMMIT})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _entry(path: Path, folder: Path) -> dict[str, Any]:
    name = path.relative_to(folder).as_posix()
    content = name.encode() if path.is_dir() else path.read_bytes()
    size = 0 if path.is_dir() else len(content)
    return {
        "type": "directory" if path.is_dir() else "file",
        "path": name,
        "oid": hashlib.sha1(content).hexdigest(),
        "size": size,
    }


@contextmanager
def serving(root: Path) -> Iterator[Hub]:
    """Serves ``root`` until the block ends."""
    hub = Hub(root)
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
