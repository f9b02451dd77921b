#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks promtool out of Debian's package prometheus into build/promtool, for the tests of /metrics and of
# the alert rules. Installing the package would start a server on this machine. Safe to repeat; needs
# apt-get, dpkg and the network, once (19 MB).
set -eu

cd "$(dirname "$0")/.."
dir=build/promtool

# The exit status says whether it is there and works.
works() {
    command -v promtool >/dev/null 2>&1 || "$dir/usr/bin/promtool" --version >/dev/null 2>&1
}

works && exit 0
rm -rf "$dir"
mkdir -p "$dir"
(cd "$dir" && apt-get -q download prometheus && dpkg -x prometheus_*.deb . && rm -f prometheus_*.deb)
works
