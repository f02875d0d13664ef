"""The platform `cpu`, registered with verl: what a processor without an accelerator answers where verl asks one; and
what of verl 0.9.1 must be changed for it. Another version is refused: these lines were read in this one.

1. `verl.utils.distributed` asks torch for the backend ``cpu:gloo,<device>:<backend>``; on a CPU the two are one, and
   torch refuses a device that is named twice.
2. The frozen reference model is kept in pinned memory, for an accelerator that there is not.
"""

import contextlib
import types
from typing import Any

import torch
import torch.distributed
import verl
from verl.plugin.platform import PlatformBase, PlatformRegistry

VERSION = "0.9.1"
_TWICE = "cpu:gloo,cpu:gloo"

if verl.__version__.partition("+")[0] != VERSION:
    raise ImportError(
        f"gongqing's CPU backend was written for verl {VERSION}, and {verl.__version__} is installed: "
        "install requirements/train.txt, or read pipelines/train/verl_cpu/platform.py again beside the new version"
    )

_init_process_group = torch.distributed.init_process_group


def _init_on_cpu(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    return _init_process_group("cpu:gloo" if backend == _TWICE else backend, *args, **kwargs)


torch.distributed.init_process_group = _init_on_cpu
if not torch.cuda.is_available():
    torch.Tensor.pin_memory = lambda self, *_, **__: self

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


def _answer(value: Any = None) -> Any:
    """A method that always answers the same."""
    return lambda *_, **__: value


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """A machine without an accelerator: one device a process, nothing to wait for, no memory but the system's."""

    device_name = "cpu"
    vendor_name = "generic"
    device_module = _Device("gongqing_cpu_device")
    is_available = _answer(True)
    device_count = _answer(1)
    current_device = _answer(torch.device("cpu"))
    set_device = synchronize = set_allocator_settings = empty_cache = cudart = _answer()
    profiler_start = profiler_stop = _answer()
    get_device_capability = _answer((None, None))
    communication_backend_name = _answer("gloo")
    visible_devices_envvar = _answer("CUDA_VISIBLE_DEVICES")  # verl sets it; nothing here reads it
    ray_resource_name = _answer("GPU")  # logical: `ray.init(num_gpus=n)` makes n of them on a machine that has none
    ray_noset_envvars = _answer([])
    is_ipc_supported = _answer(False)  # weights travel by value
    nvtx_range = _answer(contextlib.nullcontext())

    def manual_seed(self, seed: int) -> None:
        """Seeds torch."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed
