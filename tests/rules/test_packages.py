#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: tools/packages.sh gives each Debian release the names that its packages have there.

usage: test_packages.py SOURCE_ROOT
"""
import os
import re
import subprocess
import sys
import tempfile

from tooltest import report

USES = ["build", "fleet", "run", "image", "image-node", "image-fleet", "test", "more", "package"]
ONLY_12 = {"libmicrohttpd12", "libgnutls30", "libcurl4", "libopenmpi3", "clang-format-14"}
ONLY_13 = {"libmicrohttpd12t64", "libgnutls30t64", "libcurl4t64", "libopenmpi40"}


def lines(root, version, *uses):
    """The lines "package|why" on a machine whose /etc/debian_version has this text."""
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(version + "\n")
        f.flush()
        return subprocess.run(["sh", "-euc", '. tools/packages.sh; packages "$@"', "sh", *uses], cwd=root, text=True,
                              capture_output=True, check=True,
                              env={**os.environ, "NUMAPROBE_DEBIAN_VERSION": f.name}).stdout.splitlines()


DPKG = """#!/bin/sh
echo amd64
"""
DPKG_QUERY = """#!/bin/sh
for last; do :; done
case $last in
here) echo installed amd64 ;;
everywhere) echo installed all ;;
both) printf 'installed amd64\\ninstalled arm64\\n' ;;
foreign) echo installed arm64 ;;
gone) echo config-files amd64 ;;
*) exit 1 ;;
esac
"""


def installed(root, package):
    """What packages.sh finds where dpkg says the above."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("dpkg", DPKG), ("dpkg-query", DPKG_QUERY)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
            os.chmod(f.name, 0o755)
        return subprocess.run(["sh", "-euc", '. tools/packages.sh; package_installed "$1"', "sh", package], cwd=root,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}).returncode == 0


def names(listed):
    return [line.split("|")[0] for line in listed]


def main(root):
    results = []
    for version, has, lacks in [("12.11", ONLY_12, ONLY_13), ("bookworm/sid", ONLY_12, ONLY_13), ("13.1", ONLY_13, ONLY_12),
                                ("trixie/sid", ONLY_13, ONLY_12), ("forky/sid", ONLY_13, ONLY_12)]:
        all_of_it = lines(root, version, *USES)
        got = set(names(all_of_it))
        results += [
            (f"Debian {version}: each line is a package and why", all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+\|\S.+", l) for l in all_of_it)),
            (f"Debian {version}: names of that release, and no others", has <= got and not lacks & got),
            (f"Debian {version}: and what has one name in all releases", {"gcc", "openmpi-bin", "clang", "systemd"} <= got)]
    results += [(f"a package that is {package}", installed(root, package) == there)
                for package, there in (("here", True), ("everywhere", True), ("both", True), ("foreign", False), ("gone", False),
                                       ("unknown", False))]
    results.append(("one use alone", names(lines(root, "13.1", "run")) == ["openmpi-bin", "numactl", "curl"]))
    with open(os.path.join(root, "docs", "INSTALL.md"), encoding="utf-8") as f:
        by_hand = re.search(r"^## Ubuntu.*?^apt-get install (.*?)^```", f.read(), re.S | re.M)[1].replace("\\\n", " ").split()
    results.append(("INSTALL has Ubuntu's names", by_hand == names(lines(root, "trixie/sid", "build", "run"))))
    return report(results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
