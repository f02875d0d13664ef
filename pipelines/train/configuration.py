"""What is asked of a configuration in `.venv-train`: verl composes it there, and measures its rows."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipelines.core.files import write_whole
from pipelines.errors import RequestError, TrainingFailed
from pipelines.train.kinds import GIVEN
from pipelines.train.services import PYTHON


def asked(module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> bytes:
    """What a module of ours prints (`compose.answered`).

    Args:
        module: `pipelines.train.compose` or `.lengths`.
        arguments: The name of verl's configuration, and its settings.
        environment: Of the process.
        log: Where all lies that was said besides, where it is refused.

    Raises RequestError for what it, or verl, refuses, in one line.
    """
    command = [str(PYTHON), "-m", module, *arguments]
    ran = subprocess.run(command, check=False, env=dict(environment), capture_output=True)
    if not ran.returncode:
        return ran.stdout
    refused = json.loads(ran.stdout) if ran.returncode == RequestError.exit_code and ran.stdout else {}
    if "hint" in refused:
        raise RequestError(refused["refused"], where=refused["where"], hint=refused["hint"])
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(log, ran.stderr)
    if refused:
        raise RequestError(f"verl refuses the configuration: {refused['refused']}", where=log, hint=f"look at {GIVEN}")
    raise TrainingFailed(
        f"{module} ended with code {ran.returncode}", where=log, hint="mend what it names, or make train-env anew"
    )
