#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets from PyPI into build/integrations the programs that read docs/integrations, for its tests, and mkdocs for tools/site. Safe to
# repeat; needs python3-venv and the network, once (600 MB).
set -eu

cd "$(dirname "$0")/.."
. tools/venv.sh
dir=build/integrations
packages='ansible-core==2.19.14 ansible-lint==26.10.1 reframe-hpc==4.10.4 kubernetes-validate==1.37.0 pandas==3.1.1
grafana-foundation-sdk==1769699998!10.1.0 easybuild-framework==5.4.1 easybuild-easyblocks==5.4.1 pycodestyle==2.15.0 mkdocs==1.6.1'

works() {
    [ "$(cat "$dir/complete" 2>/dev/null)" = "$packages" ]
}

works && exit 0
venv_new "$dir"
# shellcheck disable=SC2086 # words on purpose
venv_pip "$dir" install $packages
printf '%s' "$packages" >"$dir/complete"
works
