"""A machine of its own, to try services on: systemd as the first process in namespaces of its own, on an overlay over
`/` whose upper half is memory. Nothing that happens there is to be seen outside but what lies in `/out`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.settings import ROOT

# $1: the name of its control groups. Namespaces are made from in there, so that it sees none of the outside's.
_ENTER = r"""
set -eu
for groups in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    if [ -e "$groups/cgroup.procs" ]; then mkdir "$groups/$1"; echo $$ > "$groups/$1/cgroup.procs"; fi
done
shift
exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child bash -c "$@"
"""
# $1: an empty folder, $2: what is /out, $3: the checkout, $4: the Python of its .venv, which may be in somebody's own
# folder. Units that the outside wants are not wanted here.
_BOOT = r"""
set -eu
umask 022
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/lib" "$1/work-lib" "$1/checkout" "$1/work-checkout" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
for folder in run tmp dev; do mount -t tmpfs -o mode=0755 tmpfs $folder; done
chmod 1777 tmp
mkdir -p out opt/gongqing opt/python opt/venv/lib dev/pts dev/shm
for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
mount -t devpts -o newinstance devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t proc proc proc
mount --rbind /sys sys
if [ -e /sys/fs/cgroup/cgroup.procs ]; then mount -t cgroup2 cgroup2 sys/fs/cgroup; else
    mount -t tmpfs -o mode=0755 tmpfs sys/fs/cgroup
    mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
fi
mount -t overlay overlay -o "lowerdir=$3,upperdir=$1/checkout,workdir=$1/work-checkout" opt/gongqing
find opt/gongqing -name '.venv*' -prune -o -not -perm -a=r -exec chmod a+rX {} +  # what root has compiled for itself
mount --bind "$2" out
mount --bind "$4" opt/python
echo /opt/python/lib > etc/ld.so.conf.d/00-python.conf
chroot . ldconfig
cp -a "$3/.venv/bin" "$3/.venv/.installed" opt/venv
ln -sf "/opt/python/bin/$(basename "$(readlink -f "$3/.venv/bin/python")")" opt/venv/bin/python3
sed -i '1s|^#!.*/\.venv/bin/python.*|#!/opt/gongqing/.venv/bin/python|' opt/venv/bin/gongqing
printf 'home = /opt/python/bin\ninclude-system-site-packages = false\n' > opt/venv/pyvenv.cfg
mount -t overlay overlay -o "lowerdir=$3/.venv/lib,upperdir=$1/lib,workdir=$1/work-lib" opt/venv/lib
sed -i "s|$3\b|/opt/gongqing|g" opt/venv/lib/python3*/site-packages/__editable__*gongqing*
mount --rbind opt/venv opt/gongqing/.venv
rm -rf {usr/,}lib/systemd/system/*.wants etc/systemd/system/*.wants etc/nginx/sites-enabled
rm -f usr/sbin/policy-rc.d
install -m 755 out/session etc/session
cat > etc/systemd/system/session.service <<'UNIT'
[Unit]
After=network-online.target systemd-journald.service
Wants=systemd-journald.service
[Service]
Type=oneshot
ExecStart=/etc/session
StandardOutput=file:/out/printed
StandardError=inherit
ExecStopPost=/bin/systemctl exit ${EXIT_STATUS}
UNIT
ip link set lo up 2>/dev/null || true
exec chroot . /usr/bin/env -i container=tests PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=session.service
"""


def require_machine(*programs: str) -> None:
    """Skips where nobody may start systemd, or where it or a program that a session calls is missing."""
    if os.getuid():
        pytest.skip("needs root")
    if missing := [name for name in ("systemctl", *programs) if not shutil.which(name)]:
        pytest.skip(f"needs Debian's {missing[0]}")


def run_session(folder: Path, session: str, files: Mapping[str, str], seconds: float = 600) -> str:
    """Boots a machine, runs a script there as root, and ends it; what the script printed. It succeeded. The files lie
    in `/out`.
    """
    out, empty, name = folder / "out", folder / "machine", f"machine-{os.getpid()}"
    out.mkdir(parents=True)
    empty.mkdir()
    for file, content in {**files, "session": session}.items():
        (out / file).write_text(content, encoding="utf-8")
    command = ["bash", "-c", _ENTER, "enter", name, _BOOT, "boot", str(empty), str(out), str(ROOT), sys.base_prefix]
    with (out / "console").open("wb") as console:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": console, "stderr": subprocess.STDOUT}
        with subprocess.Popen(command, **pipes, start_new_session=True) as process:
            try:
                code = process.wait(seconds)
            finally:
                process.kill()  # and, with unshare, the first process of the machine, and so all that are in it
    for groups in Path("/sys/fs/cgroup").glob(f"**/{name}"):
        for inner in sorted(groups.rglob("*/"), reverse=True):
            inner.rmdir()
        groups.rmdir()
    printed = (out / "printed").read_text(encoding="utf-8") if (out / "printed").exists() else ""
    assert code == 0, f"{printed[-6000:]}\n{(out / 'console').read_text(encoding='utf-8', errors='replace')[-3000:]}"
    return printed
