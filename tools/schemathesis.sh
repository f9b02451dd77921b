#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets schemathesis from PyPI into build/schemathesis, for the test that holds the daemon to its description
# (api/openapi.yaml) with requests that nobody thought of. Safe to repeat; needs python3-venv and the network,
# once.
set -eu

VERSION=4.32.5
cd "$(dirname "$0")/.."
dir=build/schemathesis

works() {
    [ -x "$dir/bin/schemathesis" ] && "$dir/bin/schemathesis" --version 2>/dev/null | grep -q "$VERSION"
}

works && exit 0
rm -rf "$dir"
mkdir -p build
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$dir"
"$dir/bin/python" -m pip install -q --disable-pip-version-check --timeout 20 --retries 1 "schemathesis==$VERSION"
works
