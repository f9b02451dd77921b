# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# For scripts that get programs from PyPI into a folder below build/, a Python environment of its own.

# venv_new DIR [OPTION...]: an empty environment in the place of DIR. Debian's own python comes first: its modules
# belong to it.
venv_new() {
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    "$python" -m venv "$@"
}

# venv_pip DIR COMMAND [ARGUMENT...]: pip of that environment, which gives up soon where there is no network.
venv_pip() {
    venv_dir=$1 && venv_command=$2 && shift 2
    "$venv_dir/bin/python" -m pip "$venv_command" -q --disable-pip-version-check --timeout 20 --retries 1 "$@"
}
