#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets Apache Otava from PyPI into build/otava, for the test that sets our change points beside it. Its
# analysis needs numpy and scipy alone, which Debian has (python3-scipy); what else it can do (databases,
# clouds, chat) is left out. Its published example series come with its source, into build/otava/source. Safe
# to repeat; needs python3-venv and the network, once.
set -eu

VERSION=0.8.0
cd "$(dirname "$0")/.."
. tools/venv.sh
dir=build/otava

# The exit status says whether it is there and works.
works() {
    [ -f "$dir/source/examples/csv/data/local_sample.csv" ] && [ -x "$dir/bin/python" ] &&
        "$dir/bin/python" -c 'import otava.analysis' 2>/dev/null
}

works && exit 0
venv_new "$dir" --system-site-packages # for Debian's scipy
venv_pip "$dir" install --no-deps "apache-otava==$VERSION"
venv_pip "$dir" download --no-deps --no-binary apache-otava --dest "$dir" "apache-otava==$VERSION"
mkdir "$dir/source"
tar -xzf "$dir/apache_otava-$VERSION.tar.gz" --strip-components=1 -C "$dir/source"
works
