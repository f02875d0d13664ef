"""The platform `cpu`, registered with verl: what a processor without an accelerator answers where verl asks one."""

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

_OF_TORCH = {
    **{name: name for name in ("get_rng_state", "set_rng_state", "manual_seed", "initial_seed")},
    "manual_seed_all": "manual_seed",
}
_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), 0),
    **dict.fromkeys(("empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated")),
    "mem_get_info": (0, 0),
    "get_device_name": "cpu",
}


class _Device(types.ModuleType):
    """`torch.cpu`, and answers for the names of `torch.cuda` that verl asks for."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(torch.cpu, name):
            return getattr(torch.cpu, name)
        if name in _OF_TORCH:
            return getattr(torch, _OF_TORCH[name])
        if name in _ANSWERS:
            return lambda *_, **__: _ANSWERS[name]
        raise AttributeError(f"a CPU has no {name}")


_DEVICE = _Device("gongqing_cpu_device")


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """A machine without an accelerator."""

    @property
    def device_name(self) -> str:
        """As torch names the device."""
        return "cpu"

    @property
    def vendor_name(self) -> str:
        """Nobody's."""
        return "generic"

    @property
    def device_module(self) -> Any:
        """What stands for `torch.cuda`."""
        return _DEVICE

    def is_available(self) -> bool:
        """A CPU always is."""
        return True

    def current_device(self) -> torch.device:
        """The one there is."""
        return torch.device("cpu")

    def device_count(self) -> int:
        """One a process."""
        return 1

    def set_device(self, device_index: int) -> None:
        """There is no other."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Nothing runs beside."""

    def manual_seed(self, seed: int) -> None:
        """Seeds torch."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seeds torch."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Memory is the system's."""

    def empty_cache(self) -> None:
        """Memory is the system's."""

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:  # noqa: ARG002
        """None is known."""
        return None, None

    def communication_backend_name(self) -> str:
        """Between processes."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """verl sets it; nothing here reads it."""
        return "CUDA_VISIBLE_DEVICES"

    def profiler_start(self) -> None:
        """There is no profiler."""

    def profiler_stop(self) -> None:
        """There is no profiler."""

    def ray_resource_name(self) -> str:
        """Logical: `ray.init(num_gpus=n)` makes n of them on a machine that has none."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """None."""
        return []

    def is_ipc_supported(self) -> bool:
        """Weights travel by value."""
        return False

    def cudart(self) -> None:
        """There is none."""

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # noqa: ARG002
        """Marks nothing."""
        yield
