"""verl on a CPU: a platform, and rollouts by transformers, registered where verl 0.9 lets them be.

    VERL_PLATFORM=cpu VERL_USE_EXTERNAL_MODULES=pipelines.train.verl_cpu VERL_ENGINE_DEVICE=cuda

verl imports the module in every process of its own; what else must be changed stands in `platform`.
"""

import os

if os.environ.get("VERL_PLATFORM") == "cpu":
    from pipelines.train.verl_cpu import platform, rollout  # noqa: F401 - each registers itself
