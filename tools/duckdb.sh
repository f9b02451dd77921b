#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets DuckDB from PyPI into build/duckdb, for the test that reads the collector's export with it. Safe to repeat;
# needs python3-venv and the network, once (20 MB).
set -eu

VERSION=1.4.1
cd "$(dirname "$0")/.."
. tools/venv.sh
dir=build/duckdb

# The exit status says whether it is there and works.
works() {
    [ -x "$dir/bin/python" ] && "$dir/bin/python" -c 'import duckdb' 2>/dev/null
}

works && exit 0
venv_new "$dir"
venv_pip "$dir" install --only-binary :all: "duckdb==$VERSION"
works
