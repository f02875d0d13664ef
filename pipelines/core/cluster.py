"""Ray: the cluster that work may be done on, and work that is done there piece by piece."""

import contextlib
import functools
import logging
import os
import secrets
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pipelines.errors import GongqingError

T = TypeVar("T")
R = TypeVar("R")

OBJECT_STORE = 512 * 2**20  # bytes, of a cluster of our own
_START = 180  # seconds that it may take to come up


def mapped_on_ray(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `work` makes of each item, in their order: `map`, on the cluster that `connected` gives, from the first
    result to the last.

    Twice as many items as it has CPUs are on their way at a time, and no more are asked for before. Raises what `work`
    raises, and GongqingError as `connected` does, and where the cluster fails.
    """
    with connected() as ray:
        remote = ray.remote(lambda item: work(item))  # noqa: PLW0108  # to Ray a partial is no function
        most, under_way = 2 * int(ray.cluster_resources().get("CPU", 1)), deque[Any]()
        for item in items:
            under_way.append(remote.remote(item))
            if len(under_way) == most:
                yield _result(ray, under_way.popleft())
        while under_way:
            yield _result(ray, under_way.popleft())


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        hint = "the same command without --engine ray needs no cluster; nothing was written"
        raise GongqingError(f"work on Ray failed: {error}", hint=hint) from error


@contextlib.contextmanager
def connected(cpus: int | None = None) -> Iterator[Any]:
    """The module `ray`, connected.

    To what it is connected to already; else to the cluster at `GONGQING_RAY_ADDRESS` or `RAY_ADDRESS`; else to a
    cluster of its own with so many CPUs (all if None). That one listens on the loopback device alone, wants a token
    that only this process and its children know, and is stopped at the end; no file of it stays.

    Raises GongqingError where Ray is not installed, or cannot be reached.
    """
    address = os.environ.get("GONGQING_RAY_ADDRESS") or os.environ.get("RAY_ADDRESS")
    with contextlib.ExitStack() as stack:
        if not address:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
            stack.enter_context(_environment(_OWN_CLUSTER | {"RAY_AUTH_TOKEN": _token()}))
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise GongqingError(
                "Ray is not installed", hint='install the extra: pip install -e ".[ray]", or use the engine "one"'
            ) from error
        if not ray.is_initialized():
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
            try:
                if address:
                    _require_listener(address)
                    ray.init(address=address, **quiet)
                else:
                    own: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": OBJECT_STORE, "_temp_dir": scratch}
                    with _time_to_start():
                        ray.init(address="local", include_dashboard=False, **own, **quiet)
            except Exception as error:  # it raises a bare one where a node does not come up in time
                at_address = "correct GONGQING_RAY_ADDRESS, or unset it for a cluster on this machine (docs/ray.md)"
                raise GongqingError(
                    f"Ray cannot be reached: {error}",
                    where=address or "a cluster on this machine",
                    hint=at_address if address else f"it has {_START} seconds to start: try again where less else runs",
                ) from error
            stack.callback(ray.shutdown)
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield ray


@contextlib.contextmanager
def _time_to_start() -> Iterator[None]:
    """While a node of ours comes up. Ray itself gives it half a minute, by no setting; on a machine that does much else
    its agents alone, in Python, take longer.
    """
    from ray._private import services

    ask: Callable[[str, str], Any] = services.get_node
    until = time.monotonic() + _START

    def wait(gcs_address: str, node_id: str) -> Any:
        while True:
            try:
                return ask(gcs_address, node_id)
            except RuntimeError:  # it is not known yet
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    services.get_node = wait
    try:
        yield
    finally:
        services.get_node = ask


def _require_listener(address: str) -> None:
    """Raises OSError where nobody listens at `host:port`: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in address:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


_OWN_CLUSTER = {
    # Named by its other use: where nothing may cluster, a node takes the loopback address.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A worker takes seconds to import all that it needs: let it wait for the next step.
    "RAY_idle_worker_killing_time_threshold_ms": "60000",
}


@functools.cache
def _token() -> str:
    """One for all clusters of this process: Ray reads it once, and would show the first one to the second cluster."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
