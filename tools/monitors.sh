#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks node_exporter, Icinga 2 and NRPE out of Debian's packages into build/monitors, for the tests of docs/monitoring. Installing
# the packages would start servers on this machine. Safe to repeat; needs apt-get, dpkg and the network, once (10 MB).
set -eu

cd "$(dirname "$0")/.."
dir=build/monitors
library=$dir/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")

works() {
    "$dir/usr/bin/prometheus-node-exporter" --version >/dev/null 2>&1 && [ -x "$dir/usr/lib/nagios/plugins/check_nrpe" ] &&
        LD_LIBRARY_PATH=$library "$library/icinga2/sbin/icinga2" --version >/dev/null 2>&1
}

works && exit 0
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
# The libraries that Icinga was built with, and those that they need, have the release in their names.
boost=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances icinga2-bin |
    sed -n 's/^ *Depends: \(libboost-[a-z]*[0-9.]*\)$/\1/p' | sort -u)
# shellcheck disable=SC2086 # words on purpose
apt-get -q download prometheus-node-exporter icinga2-bin icinga2-common nagios-nrpe-server nagios-nrpe-plugin $boost
for package in *.deb; do
    dpkg -x "$package" .
done
rm -f ./*.deb
cd - >/dev/null
works
