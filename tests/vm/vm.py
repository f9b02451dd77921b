#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with several NUMA nodes, for tests on machines that have one.

The guest's root is this machine's own root, read-only over virtio-9p, under a RAM overlay: every
program and library here is there, and no image is built. The initramfs holds busybox and a few
modules. Runs under emulation (TCG): placement, counts and shapes mean something there; nanoseconds
mean nothing.

usage: vm.py [-t TOPOLOGY] [-m MIB_PER_NODE] [-T SECONDS] [-o OUTDIR] -- COMMAND...
The command runs as root in the guest; what it writes to $OUT comes back in OUTDIR; its exit status
is ours. 125: the guest gave no answer.
Needs the packages qemu-system-x86, linux-image-amd64, busybox-static, kmod.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
DISTANCES = {(0, 1): 16, (0, 2): 21, (0, 3): 31, (1, 2): 31, (1, 3): 21, (2, 3): 16}

# cpus: CPUs of each node (0: a node without CPUs); memory in MiB comes from -m (0: without memory).
TOPOLOGIES = {
    "flat4": {"cpus": [2, 2, 2, 2], "distances": DISTANCES},
    "two": {"cpus": [1, 1]},
    "memory-only": {"cpus": [2, 2, 2, 0], "distances": {(0, 3): 17, (1, 3): 28, (2, 3): 28}},
    "cpu-only": {"cpus": [2, 2], "memory": [1, 0]},
    "nodes16": {"cpus": [1] * 16},
    "hmat": {"cpus": [2, 2, 0], "hmat": True},
    # A node without memory before one without CPUs. (Linux gives nodes with CPUs the lower numbers.)
    "gaps": {"cpus": [2, 2, 2, 0], "memory": [1, 0, 1, 1]},
    # The last node has only a module of memory that can be pulled out: the guest has QEMU's own monitor at
    # /dev/vport*. Its memory is movable, all of it can go off-line.
    "dimm": {"cpus": [2, 2, 0], "memory": [1, 1, 0], "dimm": 2},
}

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /lower /ovl /r
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
while read -r module; do insmod "/mods/$module" 2>/dev/null; done < /mods/order
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro hostroot /lower
mount -t tmpfs t /ovl; mkdir /ovl/upper /ovl/work
mount -t overlay -o lowerdir=/lower,upperdir=/ovl/upper,workdir=/ovl/work o /r
for d in proc sys dev; do mount --move /$d /r/$d; done
mkdir -p /r/dev/shm /r/mnt/out
mount -t tmpfs t /r/dev/shm; mount -t tmpfs t /r/run; mount -t cgroup2 c /r/sys/fs/cgroup
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none out /r/mnt/out
hostname numavm; echo '127.0.0.1 localhost numavm' > /r/etc/hosts
# Not chroot: in one there are no user namespaces, which units of systemd want.
exec switch_root /r /bin/sh -c '
/sbin/ip link set lo up
/bin/sh /mnt/out/.command < /dev/null
echo $? > /mnt/out/.status
sync; /bin/busybox poweroff -f'
"""


def missing():
    """Names of the packages that are not there; empty: a guest can be started."""
    need = {"qemu-system-x86": shutil.which("qemu-system-x86_64"), "kmod": shutil.which("modprobe", path="/sbin:/usr/sbin:/bin"),
            "busybox-static": os.path.exists("/bin/busybox"), "linux-image-amd64": kernel_version()}
    return [name for name, there in need.items() if not there]


def kernel_version():
    if not os.path.isdir("/lib/modules"):
        return None
    have = [v for v in os.listdir("/lib/modules") if os.path.exists(f"/boot/vmlinuz-{v}")]
    return max(have, key=lambda v: [int(n) for n in re.findall(r"\d+", v)], default=None)


def write_initramfs(work, version, modules=()):
    root = os.path.join(work, "initramfs")
    os.makedirs(f"{root}/bin")
    os.makedirs(f"{root}/mods")
    shutil.copy("/bin/busybox", f"{root}/bin/busybox")
    order = []
    for module in [*MODULES, *modules]:
        out = subprocess.run(["/sbin/modprobe", "-S", version, "--show-depends", module], check=True,
                             capture_output=True, text=True).stdout
        for path in re.findall(r"^insmod (\S+)", out, re.M):
            name = os.path.basename(path)
            if name not in order:
                order.append(name)
                shutil.copy(path, f"{root}/mods/{name}")
    with open(f"{root}/mods/order", "w") as f:
        f.write("\n".join(order) + "\n")
    with open(f"{root}/init", "w") as f:
        f.write(INIT)
    os.chmod(f"{root}/init", 0o755)
    image = os.path.join(work, "initramfs.cpio")
    names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    with open(image, "wb") as f:
        subprocess.run(["/bin/busybox", "cpio", "-o", "-H", "newc"], cwd=root, input=names, stdout=f,
                       stderr=subprocess.DEVNULL, check=True)
    return image


def numa_arguments(topology, mib):
    t = TOPOLOGIES[topology]
    args, first, total = [], 0, 0
    nodes = len(t["cpus"])
    for node, cpus in enumerate(t["cpus"]):
        parts = [f"node,nodeid={node}"]
        if cpus:
            parts.append(f"cpus={first}-{first + cpus - 1}")
            first += cpus
        if t.get("memory", [1] * nodes)[node]:
            args += ["-object", f"memory-backend-ram,id=m{node},size={mib}M"]
            parts.append(f"memdev=m{node}")
            total += mib
        if t.get("hmat"):
            parts.append(f"initiator={node if cpus else 0}")
        args += ["-numa", ",".join(parts)]
    for a in range(nodes):
        for b in range(a + 1, nodes):
            value = t.get("distances", {}).get((a, b), 21)
            args += ["-numa", f"dist,src={a},dst={b},val={value}"]
    if t.get("hmat"):
        args += hmat_arguments(t["cpus"])
    sockets = sum(1 for c in t["cpus"] if c)
    smp = f"{first},sockets={sockets},cores={first // sockets},threads=1"
    machine = "q35,hmat=on" if t.get("hmat") else "q35"
    memory = f"{total}M"
    if "dimm" in t:
        memory += f",slots=1,maxmem={total + 2 * mib}M"
        args += ["-object", f"memory-backend-ram,id=dimm-memory,size={mib}M",
                 "-device", f"pc-dimm,id=dimm,memdev=dimm-memory,node={t['dimm']}"]
    return ["-machine", machine, "-smp", smp, "-m", memory] + args


def monitor_arguments(work):
    """QEMU's monitor, by way of a socket to itself, at a port of the guest."""
    path = os.path.join(work, "monitor")
    return ["-chardev", f"socket,id=monitor,path={path},server=on,wait=off", "-mon", "chardev=monitor,mode=control",
            "-chardev", f"socket,id=port,path={path}", "-device", "virtio-serial-pci",
            "-device", "virtserialport,chardev=port,name=monitor"]


def hmat_arguments(cpus):
    args = []
    for initiator in (i for i, n in enumerate(cpus) if n):
        for target in range(len(cpus)):
            near, far = initiator == target, not cpus[target]
            latency = 80 if near else 250 + 70 * initiator if far else 140
            bandwidth = "200G" if near else "30G" if far else "100G"
            where = f"hmat-lb,initiator={initiator},target={target},hierarchy=memory"
            args += ["-numa", f"{where},data-type=access-latency,latency={latency}",
                     "-numa", f"{where},data-type=access-bandwidth,bandwidth={bandwidth}"]
    return args


def run(command, topology="flat4", mib=512, timeout=240, out=None, modules=(), more=()):
    """Runs command (argv) in the guest, with more modules and arguments of QEMU. Returns (exit status, console text)."""
    version = kernel_version()
    pluggable = "dimm" in TOPOLOGIES[topology]
    modules = [*modules, "virtio_console"] if pluggable else modules
    with tempfile.TemporaryDirectory(prefix="numaprobe-vm.") as work:
        out = os.path.realpath(out or work + "/out")
        os.makedirs(out, exist_ok=True)
        with open(f"{out}/.command", "w") as f:
            f.write("export HOME=/root LANG=C.UTF-8 OUT=/mnt/out "
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                    f"exec {shlex.join(command)}\n")
        status = f"{out}/.status"
        if os.path.exists(status):
            os.unlink(status)
        share = "security_model=none,multidevs=remap"
        # Without MSI-X: QEMU 7.2 sometimes ends in msix_table_mmio_write when several emulated CPUs start.
        plain = [w for kind in ("9p", "serial", "blk") for w in ("-global", f"virtio-{kind}-pci.vectors=0")]
        qemu = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", *plain,
                "-kernel", f"/boot/vmlinuz-{version}", "-initrd", write_initramfs(work, version, modules),
                "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on memhp_default_state=online_movable",
                "-fsdev", f"local,id=f0,path=/,readonly=on,{share}",
                "-device", "virtio-9p-pci,fsdev=f0,mount_tag=hostroot",
                "-fsdev", f"local,id=f1,path={out},{share}",
                "-device", "virtio-9p-pci,fsdev=f1,mount_tag=out",
                "-nic", "none", "-display", "none", "-serial", "stdio", "-monitor", "none",
                "-no-reboot", "-nodefaults"] + numa_arguments(topology, mib) + [
                    *(monitor_arguments(work) if pluggable else ()), *more]
        try:
            done = subprocess.run(qemu, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
            text = (done.stdout + done.stderr).decode("utf-8", "replace")
        except subprocess.TimeoutExpired as e:
            text = (e.stdout or b"").decode("utf-8", "replace") + f"\nvm: no end within {timeout} s\n"
        code = int(open(status).read()) if os.path.exists(status) else 125
        return code, text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-t", "--topology", choices=sorted(TOPOLOGIES), default="flat4")
    p.add_argument("-m", "--mib", type=int, default=512, help="memory of a node")
    p.add_argument("-T", "--timeout", type=int, default=240, help="seconds")
    p.add_argument("-o", "--out", help="directory for what the command writes to $OUT")
    p.add_argument("command", nargs="+")
    a = p.parse_args()
    if missing():
        sys.exit("vm.py: missing packages: " + " ".join(missing()))
    code, text = run(a.command, a.topology, a.mib, a.timeout, a.out)
    sys.stdout.write(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
