#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: boots the systemd of this machine as process 1 of its own namespaces, with numaprobe installed, and
lets guest.py look at the units from inside.

The root is this machine's own (or another, --root), under an overlay in memory: nothing is written here, and no image is
built. Of the kernel's settings vm.nr_hugepages is raised for one test and put back.
Controllers of cgroup v2 are those of the machine.

usage: booted.py BUILD_DIR|PACKAGE.deb|DESTDIR_OF_AN_INSTALLATION [--root=DIR]    (needs root, systemd, overlayfs)
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMD = "/lib/systemd/systemd"
LIMIT_S = int(os.environ.get("NUMAPROBE_BOOTED_S", "240"))
SLOW = int(os.environ.get("NUMAPROBE_BOOTED_SLOW", "1"))  # an emulated machine takes so many times as long
CHECKS = os.environ.get("NUMAPROBE_BOOTED_CHECKS", ".")  # those with such a name (a regular expression)
OUT = os.environ.get("NUMAPROBE_BOOTED_OUT")  # where what the guest says can be read while it is at it

# What a container has no use for, and what would sweep the /tmp that we see.
MASKED = ["systemd-tmpfiles-clean.timer", "systemd-udevd.service", "systemd-udev-trigger.service",
          "systemd-timesyncd.service", "systemd-networkd.service", "systemd-resolved.service", "systemd-binfmt.service",
          "kmod-static-nodes.service", "dbus.service", "dbus.socket", "systemd-logind.service", "apparmor.service",
          "getty.target", "cron.service", "systemd-tmpfiles-setup.service", "remote-fs.target"]

TARGET = """[Unit]
Requires=basic.target guest.service
After=basic.target
AllowIsolate=yes
"""

GUEST = """[Unit]
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
StandardOutput=file:/mnt/tap
StandardError=file:/mnt/errors
Environment=HOME=/root PYTHONDONTWRITEBYTECODE=1 SLOW=@SLOW@ CHECKS=@CHECKS@
ExecStart=/usr/bin/python3 /mnt/@GUEST@
"""

# Run in namespaces of its own: all of it goes away with its last process.
BOOT = """set -eu
work=$1
ip link set lo up
hostname booted
mount -t tmpfs -o mode=755 layer "$work/layer"
mkdir "$work/layer/upper" "$work/layer/work"
cp -a "$work/stage/." "$work/layer/upper"
mount -t overlay -o "lowerdir=$2,upperdir=$work/layer/upper,workdir=$work/layer/work" root "$work/root"
cd "$work/root"
rm -rf .dockerenv var/lib/numaprobe var/lib/numaprobe-fleet  # of a daemon that this machine has or had
mkdir -p oldroot mnt
mount --bind . .
cd .
mount --bind "$work/out" mnt
pivot_root . oldroot
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 dev /dev
for node in null zero full random urandom tty; do
    : >"/dev/$node"
    mount --bind "/oldroot/dev/$node" "/dev/$node"
done
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 pts /dev/pts
ln -s pts/ptmx /dev/ptmx
ln -s /proc/self/fd /dev/fd
: >/dev/console
mount -t tmpfs -o mode=755 run /run
mkdir /run/lock
mount -t cgroup2 cgroup /sys/fs/cgroup
umount -l /oldroot
exec env -i container=numaprobe PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=booted.target --show-status=0 --log-target=journal
"""


def missing(root="/"):
    """Why nothing can be booted here; empty: it can."""
    if os.geteuid() != 0:
        return "needs root"
    gone = [tool for tool in ("unshare", "pivot_root", "ip") if not shutil.which(tool)]
    gone += [tool for tool in (SYSTEMD, "/usr/bin/mpirun", "/usr/bin/numactl", "/usr/bin/curl") if not os.path.exists(root + tool)]
    if gone:
        return "no " + " ".join(gone)
    with open("/proc/filesystems", encoding="ascii") as f:
        names = f.read().split()
    return next((f"no {name}" for name in ("overlay", "cgroup2") if name not in names), "")


def install(source, stage, root):
    if os.path.isdir(source) and not os.path.exists(f"{source}/build.ninja"):
        subprocess.run(["cp", "-a", f"{source}/.", str(stage)], check=True)
        return
    if not source.endswith(".deb"):
        subprocess.run(["meson", "install", "-C", source, "--no-rebuild", "--quiet", "--destdir", stage],
                       check=True, stdout=subprocess.DEVNULL)
        return
    subprocess.run(["dpkg-deb", "-x", source, stage], check=True)
    if os.path.islink(f"{root}/lib"):  # it would cover the link
        shutil.copytree(stage / "lib", stage / "usr/lib", dirs_exist_ok=True)
        shutil.rmtree(stage / "lib")


def prepare(work, source, root, guest):
    for name in ("stage", "layer", "root", *([] if OUT else ["out"])):
        (work / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    if OUT:
        (work / "out").symlink_to(OUT)
    install(source, work / "stage", root)
    (work / "stage").chmod(0o755)  # it becomes the root, which every account may enter
    units = work / "stage/etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    for name in MASKED:
        (units / name).symlink_to("/dev/null")
    (work / "stage/etc/fstab").write_text("")
    (units / "booted.target").write_text(TARGET)
    (units / "guest.service").write_text(GUEST.replace("@SLOW@", str(SLOW)).replace("@CHECKS@", CHECKS)
                                       .replace("@GUEST@", guest.name))
    for path in (HERE / "guest.py", guest):
        shutil.copy(path, work / "out" / path.name)


def boot(source, work, root="/", guest=HERE / "guest.py"):
    """Boots the system below `root` with what is installed from `source`, and runs the program `guest` in it. Returns
    what the guest wrote, what else was said, and the exit status."""
    prepare(work, source, root, guest)
    done = subprocess.run(["timeout", "-k", "5", str(LIMIT_S), "unshare", "--mount", "--pid", "--fork", "--uts", "--ipc",
                           "--net", "--cgroup", "--propagation", "private", "--kill-child=KILL", "sh", "-c", BOOT, "boot",
                           str(work), str(root)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    tap, errors = (work / "out/tap"), (work / "out/errors")
    said = done.stdout + done.stderr + (errors.read_text() if errors.exists() else "")
    return tap.read_text() if tap.exists() else "", said, done.returncode


def run(source, root="/", guest=HERE / "guest.py"):
    """Prints the guest's TAP; the exit status."""
    why = missing(root)
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="numaprobe-booted.", dir="/var/tmp") as folder:
        work = pathlib.Path(folder)
        work.chmod(0o755)
        tap, said, status = boot(source, work, root, guest)
    print(tap, end="")
    for line in said.splitlines()[-40:] if status else ():
        print("#", line)
    if "1.." not in tap:
        print("not ok 1 - the guest came to its end\n1..1")
    return status


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("source")
    arguments.add_argument("--root", default="/")
    arguments.add_argument("--guest", type=pathlib.Path, default=HERE / "guest.py")
    asked = arguments.parse_args()
    sys.exit(run(asked.source, asked.root, asked.guest))
