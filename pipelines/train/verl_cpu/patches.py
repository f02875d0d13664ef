"""What of verl 0.9.1 must be changed for a CPU, and why. Another version is refused: these lines were read in this one.

1. `verl.utils.distributed` asks torch for the backend ``cpu:gloo,<device>:<backend>``; on a CPU the two are one, and
   torch refuses a device that is named twice.
2. The frozen reference model is kept in pinned memory, for an accelerator that there is not.
"""

from typing import Any

import torch
import torch.distributed
import verl

VERSION = "0.9.1"
_TWICE = "cpu:gloo,cpu:gloo"

if verl.__version__.partition("+")[0] != VERSION:
    raise ImportError(
        f"gongqing's CPU backend was written for verl {VERSION}, and {verl.__version__} is installed: "
        "install requirements/train.txt, or read pipelines/train/verl_cpu/patches.py again beside the new version"
    )

_init_process_group = torch.distributed.init_process_group


def _init_on_cpu(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    return _init_process_group("cpu:gloo" if backend == _TWICE else backend, *args, **kwargs)


torch.distributed.init_process_group = _init_on_cpu
if not torch.cuda.is_available():
    torch.Tensor.pin_memory = lambda self, *_, **__: self
