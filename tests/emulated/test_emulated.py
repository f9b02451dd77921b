# SPDX-License-Identifier: Apache-2.0
"""Other processors: unit tests of the bench, compiled for them without a warning and run by user-mode emulation.

All of bench for arm64; the timed loops and their order for ppc64el and riscv64, which have no assembly of their own.
Compilers, libraries and the emulator are in a root of their own (tests/roots): nothing foreign is installed here.
Emulation shows values and order, not times. What it lacks, such as the flags of smaps, is skipped by name.
"""
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "roots"))
import roots  # noqa: E402

HERE = "/numaprobe"
# Without libnuma and cJSON; tests/rules/test_symbols.py holds that nothing else is called.
PORTABLE = "base bench/kernels bench/ranks/thread_team.c bench/memory/affinity.c model/axis.c model/target.c"
KERNELS = ["perm", "chain", "kernels", "contended"]
# Debian's architecture: the compiler's triplet, the emulator, what is compiled, how it is linked, the tests.
PROCESSORS = {
    "arm64": ("aarch64-linux-gnu", "qemu-aarch64-static", "base model formats analysis bench",
              "-lnuma -lcjson -lmd -ldl -lpthread -lm",
              [*KERNELS, "load", "sampling", "place", "memcheck", "board", "pair", "session"]),
    "ppc64el": ("powerpc64le-linux-gnu", "qemu-ppc64le-static", PORTABLE, "-static -lpthread -lm", KERNELS),
    "riscv64": ("riscv64-linux-gnu", "qemu-riscv64-static", PORTABLE, "-static -lpthread -lm", KERNELS),
}
PREPARE = """dpkg --add-architecture arm64
apt-get update -q
apt-get install -qy --no-install-recommends qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
    gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross \
    libc6-dev:arm64 libnuma-dev:arm64 libcjson-dev:arm64 libmd-dev:arm64
"""


@pytest.fixture(scope="module", name="system")
def root():
    with roots.with_project("bookworm", HERE) as system:
        if system.run("dpkg -s qemu-user-static gcc-riscv64-linux-gnu libmd-dev:arm64", network=False).returncode:
            system.must(PREPARE)
        yield system


@pytest.mark.parametrize("processor", PROCESSORS)
def test_bench(system, processor):
    triplet, emulator, folders, link, tests = PROCESSORS[processor]
    out = f"{HERE}/build/{processor}"
    system.must(f'sh {HERE}/tests/emulated/build.sh {triplet} {out} "{folders}" "{" ".join(tests)}" {link}')
    for test in tests:
        done = system.run(f"cd {HERE}; NUMAPROBE_EMULATED=1 {emulator} {out}/{test}", network=False, timeout=900)
        good, skips = len(re.findall("^ok ", done.stdout, re.M)), re.findall("^ok .*# SKIP.*", done.stdout, re.M)
        assert done.returncode == 0 and good > 0 and "\nnot ok" not in "\n" + done.stdout, (test, done.stdout[-3000:])
        print(f"{processor} {test}: {good} ok", *skips, sep="\n    ")
