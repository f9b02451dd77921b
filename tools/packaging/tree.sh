# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What the packages are built from; read by tools/package-deb and tools/package-rpm.

# package_version ROOT : as meson.build has it
package_version() {
    sed -n "s/^  version: '\([0-9.]*\)',$/\1/p" "$1/meson.build" | head -n 1
}

# package_tree ROOT DIR : the project's files as they are now, without what a build leaves
package_tree() {
    mkdir -p "$2"
    if git -C "$1" rev-parse --git-dir >/dev/null 2>&1; then
        git -C "$1" ls-files -coz --exclude-standard
    else
        (cd "$1" && find . \( -name .git -o -name build -o -name .check -o -name .quickstart -o -name __pycache__ \) -prune \
            -o -type f -print0)
    fi | (cd "$1" && tar --null --no-recursion --ignore-failed-read -cf - -T -) | tar -xf - -C "$2"
}
