#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets axe-core from npm into build/axe, for the tests of the page (tests/system/test_dashboard*.py): its rules find
# what a keyboard or a screen reader cannot use. Safe to repeat; needs npm and the network, once. Nothing of it is
# part of the program.
set -eu

VERSION=4.14.1
SHA512=FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==
cd "$(dirname "$0")/.."
dir=build/axe

[ -f "$dir/axe-$VERSION.min.js" ] && exit 0
rm -rf "$dir"
mkdir -p "$dir"
npm pack --silent --pack-destination "$dir" "axe-core@$VERSION" >/dev/null
found=$(openssl dgst -sha512 -binary "$dir/axe-core-$VERSION.tgz" | base64 -w 0)
[ "$found" = "$SHA512" ] || {
    echo "axe.sh: axe-core $VERSION has another hash: $found" >&2
    exit 1
}
tar -xzf "$dir/axe-core-$VERSION.tgz" -C "$dir" --strip-components=1 package/axe.min.js
mv "$dir/axe.min.js" "$dir/axe-$VERSION.min.js"
