# SPDX-License-Identifier: Apache-2.0
"""Fresh Debian systems in a directory, to run the project on other releases than this machine's.

A root is made once by debootstrap and kept in build/roots/RELEASE; what tests install in it stays, so that the next
time needs no network. Remove the directory to make it again. A command runs in namespaces of its own: what it mounts
and starts ends with it, also after Ctrl-C, and nothing is mounted here.

By hand: python3 tests/roots/roots.py RELEASE [--no-network] COMMAND
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRROR = os.environ.get("NUMAPROBE_DEBIAN_MIRROR", "http://deb.debian.org/debian")
ALONE = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--propagation", "private"]

# pivot_root, not chroot: in a chroot the kernel gives no user namespace, which a run of MPI wants.
ENTER = """set -eu
root=$1
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
[ "$2" = network ] || ip link set lo up
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
mkdir -m 1777 run/lock
pivot_root . mnt
umount -l /mnt
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 sh -euc "$3"
"""


class Missing(Exception):
    """Why there can be no such system here."""


class Debian:
    """The root of a release."""

    def __init__(self, path):
        self.path = path

    def run(self, script, network=True, timeout=1800):
        """A shell script as root in it: status, and what was printed."""
        alone = ALONE + ([] if network else ["--net"])
        return subprocess.run([*alone, "sh", "-c", ENTER, "enter", str(self.path), "network" if network else "none", script],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout)

    def must(self, script, **kw):
        done = self.run(script, **kw)
        assert done.returncode == 0, (script, done.returncode, done.stdout[-6000:])
        return done.stdout

    def put_project(self, where):
        """The project's files as they are now, as in a clone, in an empty directory."""
        to = self.path / where.lstrip("/")
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run(["sh", "-euc", '. "$1/tools/packaging/tree.sh"; package_tree "$1" "$2"', "sh", ROOT, to], check=True)


def make(release, path):
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*ALONE, "debootstrap", "--variant=minbase", "--include=ca-certificates", release, part, MIRROR],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Missing(f"no Debian {release}: debootstrap: {done.stdout.strip().splitlines()[-1:]}")
    part.rename(path)


@contextlib.contextmanager
def debian(release):
    """The release's root, for us alone."""
    if os.geteuid() != 0:
        raise Missing("needs root")
    gone = [tool for tool in ("debootstrap", "unshare", "pivot_root", "ip") if not shutil.which(tool)]
    if gone:
        raise Missing("no " + " ".join(gone))
    path = ROOT / "build" / "roots" / release
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            make(release, path)
        yield Debian(path)


@contextlib.contextmanager
def with_project(release, where):
    """The release's root with the project's files in `where`, for a fixture: its tests are skipped where it cannot be."""
    import pytest  # roots are also made by hand, without it
    with contextlib.ExitStack() as stack:
        try:
            system = stack.enter_context(debian(release))
        except Missing as e:
            pytest.skip(str(e))
        system.put_project(where)
        yield system


if __name__ == "__main__":
    with debian(sys.argv[1]) as d:
        here = d.run(sys.argv[-1], network="--no-network" not in sys.argv)
        print(here.stdout, end="")
        sys.exit(here.returncode)
