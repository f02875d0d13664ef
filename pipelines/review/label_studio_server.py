"""A server of Label Studio for one person, on 127.0.0.1: `make label-studio WHO=NAME`, until Ctrl-C.

Label Studio is a process of `.venv-label-studio`.
"""

import argparse
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence

from pipelines.core.files import write_whole
from pipelines.errors import GongqingError, UnknownName
from pipelines.review.label_studio import ACCESS, DATA, Access, access_of, folder_of
from pipelines.review.labelling_server import HOST, LabellingServer
from pipelines.settings import ROOT, home

PROGRAM = ROOT / ".venv-label-studio" / "bin" / "label-studio"
PORT = 8400


class Server(LabellingServer):
    """Label Studio of one person."""

    name, program, target = "Label Studio", PROGRAM, "label-studio"
    start_seconds = 300  # the first start makes its database

    def prepare(self) -> None:
        """Makes the token and the password of the person, once, and notes the address of today."""
        if (self.folder / ACCESS).exists():
            known = access_of(self.folder)
        else:
            known = Access(self.url, secrets.token_hex(20), secrets.token_urlsafe(12))
        access = known._replace(url=self.url)
        write_whole(self.folder / ACCESS, (json.dumps(access._asdict()) + "\n").encode())

    def command(self) -> Sequence[str]:
        """`label-studio start`, on this machine alone."""
        return "start", "--no-browser", "--host", self.url, "--internal-host", HOST, "-p", str(self.port)

    def environment(self) -> dict[str, str]:
        """Neither password nor token stands in the command, which other users of the machine can read."""
        access = access_of(self.folder)
        away = ("GONGQING_", "PYTHON", "AWS_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(away)}
        return {
            **kept,
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / DATA),
            "LABEL_STUDIO_USERNAME": username_of(self.folder.name),
            "LABEL_STUDIO_PASSWORD": access.password,
            "LABEL_STUDIO_USER_TOKEN": access.token,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
            "DJANGO_DB": "sqlite",
            "COLLECT_ANALYTICS": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "LATEST_VERSION_CHECK": "false",
        }


def username_of(person: str) -> str:
    """What a person signs in as: Label Studio wants an address."""
    return f"{person}@review.invalid"


def main() -> int:
    """What `make label-studio` runs."""
    parser = argparse.ArgumentParser(prog="make label-studio", description="Serve one person's tasks for labelling.")
    parser.add_argument("who", help="the name, or the pseudonym, of the person")
    parser.add_argument("--port", type=int, default=PORT)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server = Server(folder_of(home()) / _pseudonym(arguments.who), arguments.port)
        with server:
            access = access_of(server.folder)
            sys.stdout.write(f"{server.url}\t{username_of(server.folder.name)}\t{access.password}\n")
            sys.stdout.write("gongqing review push KIND --to label-studio gives it the tasks\n")
            sys.stdout.flush()
            while server.alive():
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 1


def _pseudonym(who: str) -> str:
    names = json.loads((folder_of(home()).parent / "people.json").read_bytes()) if _has_people() else {}
    for pseudonym, name in names.items():
        if who in (pseudonym, name):
            return str(pseudonym)
    raise UnknownName("person that tasks went out to", who, names.values())


def _has_people() -> bool:
    return (folder_of(home()).parent / "people.json").exists()


if __name__ == "__main__":
    sys.exit(main())
