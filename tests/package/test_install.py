# SPDX-License-Identifier: Apache-2.0
"""docs/INSTALL.md is true: every command of it, in fresh roots of the Debian releases, under their own systemd. The unit's own
tests run there as well."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/roots"))
import roots  # noqa: E402

CLONE = "/numaprobe"
# What the package depends on and the guest uses.
NEEDS = "systemd iproute2 curl python3 procps openmpi-bin numactl man-db"


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def system(request):
    try:
        with roots.debian(request.param) as made:
            made.put_project(CLONE)
            made.must(f"apt-get -q update; apt-get -qy install --no-install-recommends {NEEDS}; cd {CLONE}; "
                      "tools/package-deb --no-lintian --output=/var/tmp/deb")
            yield made
    except roots.Missing as e:
        pytest.skip(str(e))


def booted(system, source, *options):
    done = subprocess.run([sys.executable, ROOT / "tests/booted/booted.py", source, f"--root={system.path}", *options],
                          capture_output=True, text=True, env={**os.environ, "NUMAPROBE_BOOTED_S": "900"})
    if "# SKIP" in done.stdout.splitlines()[0]:
        pytest.skip(done.stdout)
    assert done.returncode == 0 and "\nok " in done.stdout and "not ok" not in done.stdout, done.stdout + done.stderr
    print(done.stdout)


def test_every_command(system, tmp_path):
    booted(system, tmp_path, f"--guest={ROOT}/tests/package/install_guest.py")


def test_the_unit_under_its_systemd(system):
    (deb,) = system.path.glob("var/tmp/deb/numaprobe_*.deb")
    booted(system, deb)
