# SPDX-License-Identifier: Apache-2.0
"""The packages as an administrator meets them: built from this tree, read by lintian, installed over this
machine's own root (under an overlay in memory, in namespaces: nothing is written here), booted, removed.
Each test is skipped, visibly, where its tools are missing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^  version: '([\d.]+)'", (ROOT / "meson.build").read_text(), re.M).group(1)


def needs(*tools):
    gone = [t for t in tools if not shutil.which(t)]
    return pytest.mark.skipif(bool(gone), reason="missing: " + " ".join(gone))


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def build_deb(root, out, umask=0o022, **env):
    done = subprocess.run([root / "tools/package-deb", "--no-lintian", "--output", out], capture_output=True, text=True,
                          umask=umask, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    path = pathlib.Path(done.stdout.splitlines()[-1])
    assert path.exists() and path.name.startswith(f"numaprobe_{VERSION}_")
    return path


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    """The Debian package; its other files lie beside it."""
    out = tmp_path_factory.mktemp("deb")
    return build_deb(ROOT, out, DEB_BUILD_OPTIONS="parallel=2")


def contents(deb):
    listed = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    return {line.split()[5][1:]: line.split()[0] for line in listed.splitlines()}


def collector_of(deb):
    return deb.with_name(deb.name.replace("numaprobe_", "numaprobe-fleet_"))


@needs("dpkg-buildpackage", "dh")
def test_what_is_in_it(deb):
    files = contents(deb)
    for path in ["/usr/sbin/numaprobed", "/usr/bin/numaprobe", "/usr/bin/numa_bench", "/usr/libexec/numaprobe/numa_bench_mpi.so",
                 "/usr/libexec/numaprobe/numa_bench_mpi_mpich.so",
                 "/lib/systemd/system/numaprobed.service", "/lib/systemd/system/numaprobed.socket",
                 "/lib/systemd/system/numaprobe-run.service", "/lib/systemd/system/numaprobe-run.timer",
                 "/lib/systemd/system/numaprobe-push.service", "/lib/systemd/system/numaprobe-push.timer",
                 "/usr/lib/sysusers.d/numaprobe.conf", "/usr/lib/tmpfiles.d/numaprobe.conf", "/etc/numaprobe/numaprobed.conf",
                 "/usr/share/man/man1/numaprobe.1.gz", "/usr/share/man/man8/numaprobed.8.gz",
                 "/usr/share/man/man5/numaprobed.conf.5.gz", "/usr/share/bash-completion/completions/numaprobe",
                 "/usr/share/zsh/vendor-completions/_numaprobe", "/usr/share/fish/vendor_completions.d/numaprobe.fish"]:
        assert path in files, sorted(files)
    of_collector = contents(collector_of(deb))
    for path in ["/usr/sbin/numaprobe-fleetd", "/lib/systemd/system/numaprobe-fleetd.service",
                 "/lib/systemd/system/numaprobe-fleetd.socket", "/usr/lib/sysusers.d/numaprobe-fleet.conf",
                 "/usr/lib/tmpfiles.d/numaprobe-fleet.conf", "/etc/numaprobe/numaprobe-fleetd.conf",
                 "/usr/share/man/man8/numaprobe-fleetd.8.gz", "/usr/share/man/man5/numaprobe-fleetd.conf.5.gz"]:
        assert path in of_collector and path not in files, sorted(of_collector)
    assert not [p for p, mode in [*files.items(), *of_collector.items()] if "s" in mode or mode[8] == "w" and mode[0] != "l"], \
        "no set-id, none for all to write"
    assert not [p for p in files if p in of_collector and not p.endswith("/")], "no file is in both"
    for package, configuration in (deb, "numaprobed.conf"), (collector_of(deb), "numaprobe-fleetd.conf"):
        control = subprocess.run(["dpkg-deb", "-I", package, "conffiles"], capture_output=True, text=True, check=True).stdout
        assert control.split() == [f"/etc/numaprobe/{configuration}"]


@needs("dpkg-buildpackage", "dh")
def test_a_node_needs_no_library_of_the_collector(deb):
    def libraries(package):
        listed = subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^\S+", listed.replace(", ", "\n"), re.M))
    assert "libpq5" not in libraries(deb), libraries(deb)
    assert not [p for p in libraries(deb) if p.startswith("libmpich")], "its module takes whichever there is"
    assert "libpq5" in libraries(collector_of(deb))
    assert not {"openmpi-bin", "numactl", "numaprobe"} & libraries(collector_of(deb)), "nor the collector a node's"


@needs("dpkg-buildpackage", "dh", "lintian")
def test_lintian_has_nothing_to_say(deb):
    (changes,) = deb.parent.glob("*.changes")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def copy_of_tree(to):
    """The project as somebody else has it: elsewhere, of another day, its files for nobody else to read."""
    to.mkdir(mode=0o700, parents=True)
    subprocess.run(["sh", "-eu", "-c", '. "$1/tools/packaging/tree.sh"; package_tree "$1" "$2"', "sh", ROOT, to], check=True)
    for path in to.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (1500000000, 1500000000))
    return to


@needs("dpkg-buildpackage", "dh")
def test_built_again_it_is_the_same(deb, tmp_path):
    """Byte for byte, in another directory, time zone, language, with another umask and other dates of the files."""
    elsewhere = tmp_path / "another-directory" / "with-a-longer-name"
    elsewhere.mkdir(parents=True)
    source = copy_of_tree(tmp_path / "source")
    again = build_deb(source, tmp_path / "out", umask=0o077, TMPDIR=str(elsewhere), TZ="Asia/Tokyo", LC_ALL="C.UTF-8",
                      HOME=str(tmp_path), DEB_BUILD_OPTIONS="parallel=1")
    made = [p for p in deb.parent.iterdir() if p.suffix in (".deb", ".xz", ".dsc")]
    assert len(made) >= 3, made
    for one in made:
        assert one.read_bytes() == (again.parent / one.name).read_bytes(), f"{one} is not {again.parent / one.name}"


# Over our own root: what it depends on is there, and so are dpkg and its records.
OVERLAY = """set -eu
mount -t tmpfs layer "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" root "$1/root"
mount --bind /proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs run "$1/root/run"
cp "$2" "$1/root/run/numaprobe.deb"
cp "$3" "$1/root/run/collector.deb"
printf '%s' "$4" >"$1/root/run/script"
exec chroot "$1/root" /bin/sh -eu /run/script
"""

LIFE = r"""
say() { printf '\n== %s\n' "$*"; }
rm -rf /etc/numaprobe /var/lib/numaprobe
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
say install
dpkg -i /run/numaprobe.deb
dpkg --verify numaprobe
getent passwd numaprobe | grep '^numaprobe:.*:/var/lib/numaprobe:.*nologin$'
test -L /etc/systemd/system/multi-user.target.wants/numaprobed.service
! test -e /etc/systemd/system/sockets.target.wants/numaprobed.socket
numaprobed --check-config
numaprobed --version
numa_bench --np=1 --size=256K --cell-ms=20 --csv >/dev/null
man -w numaprobed.conf run_numa.sh numa_bench numaprobed numaprobe 2>/dev/null || echo "(no man)"
bash -c '. /usr/share/bash-completion/completions/numaprobe && complete -p numaprobe'
say "an administrator's configuration survives an upgrade"
echo 'keep_runs = 5' >>/etc/numaprobe/numaprobed.conf
mkdir -p /var/lib/numaprobe && touch /var/lib/numaprobe/numaprobe.db
dpkg -i --force-confdef --force-confold /run/numaprobe.deb
grep -q '^keep_runs = 5$' /etc/numaprobe/numaprobed.conf
numaprobed --print-config | grep -q '^keep_runs = 5$'
say "remove leaves the configuration and the runs"
dpkg -L numaprobe | sort >/run/listed
dpkg -r numaprobe
grep -q '^keep_runs = 5$' /etc/numaprobe/numaprobed.conf
test -e /var/lib/numaprobe/numaprobe.db
! test -e /usr/sbin/numaprobed
say "purge leaves nothing"
dpkg -P numaprobe
while read -r path; do
    test -d "$path" || ! test -e "$path" || { echo "left: $path"; exit 1; }
done </run/listed
for path in /etc/numaprobe /var/lib/numaprobe /usr/libexec/numaprobe /usr/share/doc/numaprobe \
    /etc/systemd/system/multi-user.target.wants/numaprobed.service /var/lib/systemd/deb-systemd-helper-enabled/numaprobed.service.dsh-also; do
    ! test -e "$path" || { echo "left: $path"; exit 1; }
done
echo all is well
"""

LIFE_OF_THE_COLLECTOR = r"""
say() { printf '\n== %s\n' "$*"; }
rm -rf /etc/numaprobe /var/lib/numaprobe-fleet
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
say install
dpkg -i /run/collector.deb
dpkg --verify numaprobe-fleet
getent passwd numaprobe-fleet | grep '^numaprobe-fleet:.*:/var/lib/numaprobe-fleet:.*nologin$'
! test -e /etc/systemd/system/multi-user.target.wants/numaprobe-fleetd.service
! command -v numaprobed || ! dpkg -S "$(command -v numaprobed)"
numaprobe-fleetd --check-config
numaprobe-fleetd --nodes='n[1-3]' --print-nodes | grep -c . | grep '^3$'
say "an administrator's configuration and an enabled service survive an upgrade"
echo 'every = 60' >>/etc/numaprobe/numaprobe-fleetd.conf
mkdir -p /var/lib/numaprobe-fleet && touch /var/lib/numaprobe-fleet/fleet.db
systemctl enable numaprobe-fleetd.service
dpkg -i --force-confdef --force-confold /run/collector.deb
numaprobe-fleetd --print-config | grep -q '^every = 60$'
test -L /etc/systemd/system/multi-user.target.wants/numaprobe-fleetd.service
say "beside the daemon of a node"
dpkg -i /run/numaprobe.deb
dpkg -P numaprobe
numaprobe-fleetd --check-config
say "remove leaves the configuration and the history"
dpkg -L numaprobe-fleet | sort >/run/listed
dpkg -r numaprobe-fleet
grep -q '^every = 60$' /etc/numaprobe/numaprobe-fleetd.conf
test -e /var/lib/numaprobe-fleet/fleet.db
! test -e /usr/sbin/numaprobe-fleetd
say "purge leaves nothing"
dpkg -P numaprobe-fleet
while read -r path; do
    test -d "$path" || ! test -e "$path" || { echo "left: $path"; exit 1; }
done </run/listed
for path in /etc/numaprobe /var/lib/numaprobe-fleet /usr/share/doc/numaprobe-fleet \
    /etc/systemd/system/multi-user.target.wants/numaprobe-fleetd.service; do
    ! test -e "$path" || { echo "left: $path"; exit 1; }
done
echo all is well
"""


@needs("dpkg-buildpackage", "dh", "unshare", "chroot")
@needs_root
@pytest.mark.parametrize("life", [LIFE, LIFE_OF_THE_COLLECTOR], ids=["daemon", "collector"])
def test_install_upgrade_remove_purge(deb, life, tmp_path):
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", OVERLAY, "overlay", tmp_path, deb,
                           collector_of(deb), life], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("all is well\n"), done.stdout[-3000:] + done.stderr[-2000:]


@needs("dpkg-buildpackage", "dh")
@needs_root
def test_booted(deb):
    """What tests/booted asks of a build holds for the package."""
    done = subprocess.run([sys.executable, ROOT / "tests/booted/booted.py", deb], capture_output=True, text=True)
    if "# SKIP" in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0 and "\nok " in done.stdout and "not ok" not in done.stdout, done.stdout + done.stderr


@needs("rpmbuild", "rpm")
def test_rpm(tmp_path):
    """The libraries have other names there, so --nodeps; Open MPI is where this machine has it."""
    done = subprocess.run([ROOT / "tools/package-rpm", "--output", tmp_path, "--nodeps", "--define", "mpi_home /usr"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for name, wanted, configuration in (
            ("numaprobe", {"/usr/sbin/numaprobed", "/usr/bin/numaprobe", "/usr/lib/systemd/system/numaprobed.service"},
             "/etc/numaprobe/numaprobed.conf"),
            ("numaprobe-fleet", {"/usr/sbin/numaprobe-fleetd", "/usr/lib/systemd/system/numaprobe-fleetd.service",
                                 "/usr/lib/sysusers.d/numaprobe-fleet.conf"}, "/etc/numaprobe/numaprobe-fleetd.conf")):
        (made,) = tmp_path.glob(f"RPMS/*/{name}-{VERSION}-*.rpm")

        def asked(*options):
            return subprocess.run(["rpm", "-qp", *options, made], capture_output=True, text=True, check=True).stdout
        assert wanted | {configuration} <= set(asked("-l").split())
        assert asked("--configfiles").split() == [configuration]
        assert asked("--queryformat", "%{VERSION} %{LICENSE}") == f"{VERSION} Apache-2.0 AND MIT"
        assert ("libpq.so" in asked("--requires")) == (name == "numaprobe-fleet")
