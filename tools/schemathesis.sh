#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets schemathesis from PyPI into build/schemathesis, for the test that holds the daemon to its description
# (api/openapi.yaml) with requests that nobody thought of. Safe to repeat; needs python3-venv and the network,
# once.
set -eu

VERSION=4.32.5
cd "$(dirname "$0")/.."
. tools/venv.sh
dir=build/schemathesis

works() {
    [ -x "$dir/bin/schemathesis" ] && "$dir/bin/schemathesis" --version 2>/dev/null | grep -q "$VERSION"
}

works && exit 0
venv_new "$dir"
venv_pip "$dir" install "schemathesis==$VERSION"
works
