# SPDX-License-Identifier: Apache-2.0
"""Debian 13 as it comes: ./quickstart and the short tests in a root of its own, with a network and without.

The tests run in this order: the first installs what the next need. Each prints how long it took.
"""
import pathlib
import re
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import roots  # noqa: E402

HERE = "/numaprobe"
# Without a network: what starts daemons, runs and clients.
LOCAL = "end_to_end cli access service storage api_runs"


@pytest.fixture(scope="module")
def trixie():
    with roots.with_project("trixie", HERE) as system:
        yield system


@pytest.fixture(autouse=True)
def timed(request):
    begun = time.monotonic()
    yield
    print(f"{request.node.name}: {time.monotonic() - begun:.0f} s")


def quickstart(system, how, **kw):
    said = system.must(f"cd {HERE}; {how}", **kw)
    assert "This was run 1, stored in" in said and re.search(r"^run +1: succeeded$", said, re.M), said
    assert "launcher" not in said and "without MPI" not in said, said
    return said


def test_quickstart(trixie):
    quickstart(trixie, "./quickstart")
    log = trixie.must(f"cat {HERE}/.quickstart/log/build.log")
    assert "warning:" not in log, [line for line in log.splitlines() if "warning:" in line]


def test_the_short_tests(trixie):
    """In ./check they come with warnings as errors. It downloads what it compares us with; that is another release's business."""
    trixie.must(f"cd {HERE}; . tools/packages.sh; packages_install /tmp/log fleet test")
    said = trixie.must(f"cd {HERE}; ./check --no-install --suite unit --suite rules --suite system")
    passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", said).groups())
    assert failed == 0 and passed > 1000, said[-3000:]
    print("\n".join(line for line in said.splitlines() if "skipped" in line))


def test_the_second_compiler_has_no_warning(trixie):
    trixie.must(f"cd {HERE}; CC=clang meson setup build/clang -Dbuildtype=debug -Dwerror=true; meson compile -C build/clang")


def test_quickstart_without_a_network(trixie):
    trixie.must(f"rm -rf {HERE}/.quickstart {HERE}/build/quickstart")
    quickstart(trixie, "./quickstart", network=False)


def test_quickstart_of_an_ordinary_account(trixie):
    """Who is not root has a network of its own for mpirun by a user namespace."""
    trixie.must(f"id tester 2>/dev/null || useradd -m tester; rm -rf {HERE}/.quickstart; chown -R tester {HERE}; chmod 755 {HERE}")
    quickstart(trixie, "setpriv --reuid=tester --regid=tester --init-groups env HOME=/home/tester ./quickstart", network=False)
    trixie.must(f"chown -R root {HERE}")


def test_the_short_tests_without_a_network(trixie):
    trixie.must(f"cd {HERE}; meson test -C build/check-debug --no-rebuild --timeout-multiplier 3 --print-errorlogs {LOCAL}",
                network=False)
