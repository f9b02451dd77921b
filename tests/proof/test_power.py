# SPDX-License-Identifier: Apache-2.0
"""Power cuts. A daemon works on a disk of a virtual machine, and QEMU writes down every block write and every
flush. From that log the disk is built again as a cut at a random moment leaves it: all that was flushed, of the
rest a random part, torn within sectors of 512 bytes. It is mounted, and what was acknowledged until then must be
there. A second daemon, whose fsync does nothing, must lose some: else this test could not tell.

NUMAPROBE_POWER_POINTS: how many cuts (30). Needs QEMU with a kernel, mkfs.ext4, and root (loop mounts).
"""
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

import pytest

from conftest import HERE, SEED, assert_whole, count, dead_copy, open_directory, tool, try_command

sys.path.insert(0, str(HERE.parent / "vm"))
import vm  # noqa: E402

POINTS = count("NUMAPROBE_POWER_POINTS", 30)
SECONDS = 8  # of load on each disk
DISK, FILE_SYSTEM = 192 << 20, "188M"  # the daemon wants 64 MiB to spare; what is over holds the mark
SUPERBLOCK = 1024  # of ext4: two sectors under one checksum; torn in itself it takes e2fsck, not a mount
SECTOR, FLUSH, DISCARD = 512, 1, 4   # of the log: https://docs.kernel.org/admin-guide/device-mapper/log-writes.html

pytestmark = [pytest.mark.skipif(bool(vm.missing()), reason="missing: " + " ".join(vm.missing())),
              pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk's image"),
              pytest.mark.skipif(tool("mkfs.ext4") is not None, reason=str(tool("mkfs.ext4")))]


def disk_arguments(work, name, number):
    base, log = work / f"{name}.img", work / f"{name}.log"
    with open(base, "wb") as f:
        f.truncate(DISK)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(base), FILE_SYSTEM], check=True)
    subprocess.run(["cp", "--sparse=always", str(base), str(work / f"{name}.disk")], check=True)
    with open(log, "wb") as f:
        f.truncate(4 << 30)
    return ["-blockdev", f"driver=file,filename={work}/{name}.disk,node-name=f{number}",
            "-blockdev", f"driver=file,filename={log},node-name=l{number}",
            "-blockdev", f"driver=blklogwrites,node-name=b{number},file=f{number},log=l{number},log-sector-size={SECTOR},"
                         "log-super-update-interval=1",
            "-device", f"virtio-blk-pci,drive=b{number}"]


def read_log(path):
    """[(offset, data or None, flags)] in order."""
    entries = []
    with open(path, "rb") as f:
        magic, _, n, size = struct.unpack("<QQQI", f.read(28))
        assert magic == 0x6a736677736872 and size == SECTOR
        at = SECTOR
        for _ in range(n):
            f.seek(at)
            sector, sectors, flags, _ = struct.unpack("<QQQQ", f.read(32))
            at += SECTOR
            data = None
            if sectors and not flags & DISCARD:
                f.seek(at)
                data = f.read(sectors * SECTOR)
                at += len(data)
            entries.append((sector * SECTOR, data, flags))
    return entries


def is_mark(offset, data):
    return data is not None and offset == DISK - 4096 and data.startswith(b"MARK")


class Cuts:
    """The disk at ever later points of its log."""

    def __init__(self, base, entries):
        self.entries, self.done = entries, 0
        self.flushed = bytearray(base.read_bytes())  # all before entry `done`, which was flushed

    def at(self, point, rng):
        """(image, what was acknowledged) as a cut after this entry may leave it."""
        last_flush = max((i for i in range(self.done, point + 1) if self.entries[i][2] & FLUSH), default=self.done - 1)
        for offset, data, _ in self.entries[self.done:last_flush + 1]:
            if data:
                self.flushed[offset:offset + len(data)] = data
        self.done = max(self.done, last_flush + 1)
        image = bytearray(self.flushed)
        for offset, data, _ in self.entries[self.done:point + 1]:
            if data and not is_mark(offset, data) and rng.random() < 0.5:
                whole = rng.random() < 0.5 or offset <= SUPERBLOCK < offset + len(data)
                for s in range(0, len(data), SECTOR):
                    if whole or rng.random() < 0.8:
                        image[offset + s:offset + s + SECTOR] = data[s:s + SECTOR]
        marks = [e for e in self.entries[:point + 1] if is_mark(*e[:2])]
        return image, json.loads(marks[-1][1][4:].rstrip(b"\0"))


def lost(state, known):
    """What is wrong with the database of a disk after a cut; None: nothing."""
    try:
        with dead_copy(state) as db:
            assert_whole(db)
            there = {r[0] for r in db.execute("SELECT id FROM run")}
            (label,) = db.execute("SELECT label FROM run WHERE id = 1").fetchone() or ("",)
    except Exception as e:
        return f"damaged: {e}"
    missing = set(range(1, known["run"] + 1)) - there
    number = int(label[1:] or 0)
    return f"lost: {sorted(missing)}, label {number} of {known['label']}" if missing or number < known["label"] else None


def cut_all(work, name, rng, points):
    """[(point, what was lost)] of so many cuts; the mount itself must work, as after any power cut."""
    entries = read_log(work / f"{name}.log")
    first = next(i for i, e in enumerate(entries) if is_mark(*e[:2]))
    cuts, found = Cuts(work / f"{name}.img", entries), []
    image, place = work / "cut.img", work / "mnt"
    place.mkdir(exist_ok=True)
    for point in sorted(rng.choices(range(first, len(entries)), k=points)):
        disk, known = cuts.at(point, rng)
        image.write_bytes(disk)
        if not try_command("mount", "-o", "loop", str(image), str(place)):
            pytest.skip("cannot mount a disk's image here") if not found else pytest.fail(f"no mount at {point}")
        try:
            found.append((point, lost(place / "state", known)))
        finally:
            subprocess.run(["umount", str(place)], check=True)
    return found, len(entries)


def test_power_cuts(numaprobed, tell):
    rng = random.Random(SEED)
    with open_directory("power") as work:
        code, text = vm.run(
            ["/usr/bin/python3", str(HERE / "power_guest.py"), str(numaprobed), str(SECONDS), "/dev/vda", "/dev/vdb=unsynced"],
            "flat4", 384, 240, str(work / "out"), ["virtio_blk", "ext4"],
            disk_arguments(work, "synced", 0) + disk_arguments(work, "unsynced", 1))
        assert code == 0, text[-4000:]
        found, entries = cut_all(work, "synced", rng, POINTS)
        control, _ = cut_all(work, "unsynced", rng, max(10, POINTS // 10))
    bad = [f for f in found if f[1]]
    bitten = [f for f in control if f[1]]
    load = re.findall(r"/dev/vd. \{.*\}", text)
    tell(f"{len(found)} cuts in a log of {entries}: {len(bad)} lost something; without fsync {len(bitten)} of "
         f"{len(control)}; load {load}")
    assert not bad, bad
    assert bitten, "without fsync nothing was lost: this test sees nothing"
