#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles folders of the project and some unit tests of bench for another processor, without a warning.
# usage: build.sh TRIPLET OUT "FOLDER..." "TEST..." [LINKER OPTION]...
set -eu
cd "$(dirname "$0")/../.."
triplet=$1 out=$2 folders=$3 tests=$4
shift 4
mkdir -p "$out/objects"
export out
cat >"$out/cc" <<CC
#!/bin/sh
exec $triplet-gcc -std=gnu17 -D_GNU_SOURCE '-DNUMAPROBE_VERSION="0"' -I. -O2 -Wall -Wextra -Werror \\
    -Wno-missing-field-initializers -Wno-sign-compare -Wno-format-truncation "\$@"
CC
chmod +x "$out/cc"
# Without programs, and without the door to MPI, which is a module of its own.
# shellcheck disable=SC2086,SC2016 # words on purpose; the inner shell expands
find $folders -name '*.c' ! -path bench/main.c ! -path bench/ranks/comm_mpi.c -print0 |
    xargs -0 -P "$(nproc)" -I FILE sh -euc '"$out/cc" -c "$1" -o "$out/objects/$(echo "$1" | tr / _).o"' sh FILE
rm -f "$out/all.a"
"$triplet-ar" rc "$out/all.a" "$out"/objects/*.o
for test in $tests; do
    "$out/cc" "tests/unit/bench/test_$test.c" "$out/all.a" "$@" -o "$out/$test"
done
