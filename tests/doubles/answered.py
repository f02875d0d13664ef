"""The command line, but for whom it asks: the fake model. Run as a script, with the arguments of `gongqing`."""

import sys
from pathlib import Path

from fake_model import FakePool

from pipelines.cli import main
from pipelines.flow import clients

# What stands before the arguments.
GONGQING = (sys.executable, str(Path(__file__)))

if __name__ == "__main__":
    clients.ClientPool = FakePool  # type: ignore[misc]
    main()
