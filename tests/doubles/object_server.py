"""A storage that speaks S3, on this machine: moto's server in a process of its own, with an empty bucket.

It answers one request after the other: what it compares and then puts is one step, as in a real one.
"""

import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

BUCKET = "gongqing-test"

_SERVE = f"""
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

class Quiet(WSGIRequestHandler):
    def log(self, *_):
        pass

s3_backends["123456789012"]["aws"].create_bucket("{BUCKET}", "us-east-1")
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), request_handler=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
"""


class ObjectServer:
    """Serves while its block is entered."""

    def __enter__(self) -> Self:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, "-c", _SERVE], start_new_session=True, **pipes)
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "of the tests",
            "AWS_SECRET_ACCESS_KEY": "of the tests as well",
            "AWS_REGION": "us-east-1",
        }
