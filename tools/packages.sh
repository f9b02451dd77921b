# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What numaprobe needs from Debian, in one table, and how to get what is missing. Read by ./quickstart,
# ./check and tools/package-deb (". tools/packages.sh"); plain POSIX sh, because nothing is installed yet.

# use|package|why.   use: build, fleet (build the whole collector), run, image, image-node, image-fleet (libraries
# of a machine that does not build), test, more (optional tests), package (tools/package-deb). RELEASE:NAME is the name in that Debian release; 13 also stands for later ones. A release that
# is not listed does not need the package, or does not have it.
package_table() {
    cat <<'TABLE'
build|gcc|the compiler
build|libc6-dev|headers of the C library
build|meson|describes the build
build|ninja-build|runs the build
build|pkg-config|finds the libraries
build|python3|runs the build's own tools
build|python3-yaml|turns openapi.yaml into the JSON that the daemon serves
build|libcjson-dev|reads JSON
build|libmd-dev|SHA-256 for the machine's fingerprint
build|libhwloc-dev|reads the topology: nodes, cores, caches
build|libnuma-dev|memory policy, and where a page really is
build|libsqlite3-dev|keeps the runs
build|libmicrohttpd-dev|the HTTP server
build|libgnutls28-dev|certificates of clients
build|libcurl4-openssl-dev|the command line's HTTP client
build|libopenmpi-dev|one process per core, which start together
run|openmpi-bin|mpirun starts the ranks
run|numactl|binds each rank to its core and memory
run|curl|for the examples
build|libzstd-dev|compresses whole runs in the fleet collector
build|zlib1g-dev|compresses the collector's responses for browsers
fleet|libpq-dev|the fleet collector's client of PostgreSQL (the build does without)
image|libcjson1|reads JSON
image|libmd0|SHA-256
image-node|libhwloc15|the topology
image-node|libnuma1|memory policy
image|libsqlite3-0|keeps the runs
image|12:libmicrohttpd12 13:libmicrohttpd12t64|the HTTP server
image|12:libgnutls30 13:libgnutls30t64|certificates of clients
image|12:libcurl4 13:libcurl4t64|the command line's HTTP client
image-node|12:libopenmpi3 13:libopenmpi40|what the ranks are linked with
image-fleet|libzstd1|whole runs that the collector keeps
image-fleet|zlib1g|the collector's responses for browsers
image-fleet|libpq5|the collector's client of PostgreSQL
image-fleet|curl|the image's health check
test|python3-pytest|runs the tests against the real daemon
test|python3-scipy|its statistics are an oracle for ours
test|python3-clustershell|its node sets are an oracle for ours (skipped without)
test|python3-venv|a place of their own for Apache Otava (change points) and schemathesis (the API)
test|python3-jsonschema|holds exports to their schema
test|sqlite3|reads the database as a person would
test|postgresql|the other store of a fleet, in a directory of the tests (skipped without)
test|clang|the second compiler, whose warnings count too
test|12:clang-format-14|the code's layout is a test (skipped without)
test|libclang-rt-dev|sanitizers of the second compiler
test|procps|tests look for processes left behind
test|shellcheck|reads the shell scripts
test|strace|disks that fail, and kills at a chosen system call (skipped without)
test|faketime|clocks that jump years (skipped without)
test|bzip2|unpacks recorded machines
test|codespell|finds spelling mistakes (skipped without)
test|hwloc-nox|lstopo: what hwloc reads from our XML
test|tmux|a terminal for the tests of the command line (skipped without)
more|systemd|checks the unit, and runs it (--all; skipped without)
package|build-essential|what every Debian package is built with
package|dpkg-dev|builds the Debian package
package|debhelper|builds the Debian package
package|libmpich-dev|the module for launchers of MPICH and Intel MPI, which is in the package
more|lintian|reads the Debian package (--all)
more|rpm|builds the RPM (--all)
more|git|tells files of the project from others (every file without)
more|chromium|the dashboard, and a page of another site that tries to get in (skipped without)
more|buildah|builds the container image (--all)
more|debootstrap|the Debian base for that image, and roots of other releases (--all)
more|libmpich-dev|the module for launchers of MPICH and Intel MPI
more|mpich|its launcher, hydra (skipped without)
more|slurmctld|a batch system of this machine alone, in namespaces (--all)
more|slurmd|its node
more|slurm-client|starts ranks by srun
more|slurm-wlm-basic-plugins|PMIx and PMI-2 for them
more|openssh-server|an sshd of the tests alone, on loopback (skipped without)
more|munge|knows its accounts
more|qemu-system-x86|machines with several NUMA nodes (--all)
more|linux-image-amd64|a kernel for them
more|busybox-static|their first program
more|e2fsprogs|file systems for power cuts
more|kmod|the modules that they need
TABLE
}

say() { printf '%s\n' "$@"; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# The Debian release whose names hold here: 12 or 13. Ubuntu and Debian's testing name the release that they became
# or become ("trixie/sid").
debian_release() {
    case $(cat "${NUMAPROBE_DEBIAN_VERSION:-/etc/debian_version}" 2>/dev/null) in
    12* | bookworm*) echo 12 ;;
    *) echo 13 ;;
    esac
}

# packages USE... -> "package|why" lines of those uses, by their names in this release
packages() {
    for use_ in "$@"; do
        package_table | awk -F'|' -v use="$use_" -v release="$(debian_release)" '
            $1 == use {
                n = split($2, names, " ")
                for (i = 1; i <= n; i++)
                    if (sub("^" release ":", "", names[i]) || names[i] !~ /:/)
                        print names[i] "|" $3
            }'
    done
}

# For this machine's processor: packages of others may be beside it, or alone.
package_installed() {
    # shellcheck disable=SC2016 # the ${...} is dpkg-query's own
    dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null |
        grep -qxE "installed (all|$(dpkg --print-architecture))"
}

# packages_install LOG USE... : says what is missing and why, and installs that alone
packages_install() {
    log_=$1
    shift
    if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
        packages_by_hand "$@"
        return 0
    fi
    list_=$(packages "$@" | while IFS='|' read -r name_ why_; do
        package_installed "$name_" || printf '  %-22s %s\n' "$name_" "$why_"
    done)
    [ -n "$list_" ] || return 0
    missing_=$(printf '%s\n' "$list_" | awk '{printf "%s%s", sep, $1; sep = " "}')
    say "Installing from Debian, because it is missing:" "" && printf '%s\n' "$list_"
    if [ -n "${NUMAPROBE_NO_INSTALL:-}" ]; then
        fail "these packages are missing and NUMAPROBE_NO_INSTALL is set"
    fi
    root_=
    if [ "$(id -u)" -ne 0 ]; then
        by_hand_="apt-get install --no-install-recommends $missing_"
        command -v sudo >/dev/null 2>&1 || fail "installing needs root, and there is no sudo; as root: $by_hand_"
        root_=sudo
        sudo -v || fail "sudo does not let this account install packages; as root: $by_hand_"
    fi
    for step_ in update "install -y --no-install-recommends"; do
        arguments_=$missing_
        [ "$step_" != update ] || arguments_=
        # shellcheck disable=SC2086 # words on purpose
        $root_ env DEBIAN_FRONTEND=noninteractive apt-get -q $step_ $arguments_ >>"$log_" 2>&1 </dev/null || {
            tail -n 15 "$log_" >&2
            fail "apt-get ${step_%% *} failed; the complete log is $log_"
        }
    done
}

# Not Debian: we do not guess other distributions' names, we say what is needed.
packages_by_hand() {
    for tool_ in cc meson ninja pkg-config mpirun numactl; do
        command -v "$tool_" >/dev/null 2>&1 && continue
        say "This is not a Debian-like system (no apt-get), so nothing is installed for you." >&2
        say "'$tool_' is missing. By their Debian 13 names, numaprobe needs:" "" >&2
        packages "$@" | awk -F'|' '{printf "  %-22s %s\n", $1, $2}' >&2
        exit 1
    done
    return 0
}

# step TITLE LOG COMMAND... : one line for people, the rest into LOG; the log's end when it fails.
# The command runs beside us so that Ctrl-C and a TERM are heard at once.
step() {
    title_=$1
    log_=$2
    shift 2
    say "$title_"
    printf '\n== %s\n' "$*" >>"$log_"
    "$@" >>"$log_" 2>&1 </dev/null &
    step_pid=$!
    if wait "$step_pid"; then
        step_pid=
        return 0
    fi
    step_pid=
    [ -n "${step_quiet:-}" ] || tail -n 25 "$log_" >&2
    printf '%s: "%s" failed; the complete log is %s\n' "${0##*/}" "$title_" "$log_" >&2
    return 1
}
