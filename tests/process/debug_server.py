"""A debuginfod server for tests, which can also answer wrongly."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def debug_server(files: Mapping[str, bytes], missing_bytes: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Serve files by their paths; yield the URL of the server, and the list of the requested paths.

    :param missing_bytes: the server announces so many bytes more than it sends.
    """
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is http.server's
            asked.append(self.path)
            found = files.get(self.path)
            self.send_response(200 if found is not None else 404)
            if missing_bytes and found is not None:
                self.send_header("Content-Length", str(len(found) + missing_bytes))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_address[1]}", asked
        finally:
            served.shutdown()
            thread.join()
