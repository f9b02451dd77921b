# SPDX-License-Identifier: Apache-2.0
"""Our node sets against ClusterShell: expanded, folded, and operators. Skipped where it is not installed.
NUMAPROBE_ORACLE names the program that parses and folds a set per line."""
import os
import random
import subprocess
import sys

import pytest

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for any python3: it is pure Python
SEED, SETS = 16, 10000


def ours(lines):
    """[(fold, names)] of each set."""
    done = subprocess.run([os.environ["NUMAPROBE_ORACLE"]], input="\n".join(lines) + "\n", text=True, capture_output=True,
                          check=True)
    found = done.stdout.split("\n")[:-1]
    assert len(found) == len(lines)
    return [(line.split("\t")[0], line.split("\t")[1].split()) if not line.startswith("error: ") else (line, None)
            for line in found]


@pytest.fixture(scope="module", name="theirs")
def clustershell():
    module = pytest.importorskip("ClusterShell.NodeSet", reason="python3-clustershell is not installed")
    return lambda text: module.NodeSet(text, resolver=module.RESOLVER_NOGROUP)


def bracket(rng):
    """Ranges, steps, padding: "[1-3,08-12/2]"."""
    ranges = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        width = rng.choice((1, 1, 1, 2, 3))
        a = rng.randrange(0, 9 if rng.random() < 0.4 else 130)
        b = a + rng.choice((0, 1, 2, 3, 9, 14))
        low, high = f"{a:0{width}d}", f"{b:0{width}d}"
        if low[0] == "0" and len(low) > 1:
            low = low.zfill(len(high))
        step = rng.choice(("", "", "", "/2", "/3"))
        ranges.append(low if a == b else f"{low}-{high}{step}")
    return "[" + ",".join(ranges) + "]"


def operand(rng):
    shape = rng.choice(("n#", "n#", "n#", "r#n#", "r#n#", "x#-ib", "gpu#-#", "a#b#c#", "login", "n7", "n07-ib1", "r2n#"))
    text = shape
    while "#" in text:
        text = text.replace("#", bracket(rng) if rng.random() < 0.8 else str(rng.randrange(12)), 1)
    return text


def random_set(rng):
    text = operand(rng)
    for _ in range(rng.choice((0, 0, 1, 2, 3, 5))):
        text += rng.choice((",", ",", ",", "!", "&", "^")) + operand(rng)
    return text


def points(rng):
    """Names of several numbers with holes: what can be folded in many ways."""
    return ",".join(sorted({f"r{rng.randrange(5)}n{rng.randrange(4):02d}" + ("" if deep else f"c{rng.randrange(3)}")
                            for deep in [rng.random() < 0.5] for _ in range(rng.randrange(2, 18))}))


def test_random_sets(theirs):
    print("seed", SEED)
    rng = random.Random(SEED)
    sets = [points(rng) if rng.random() < 0.2 else random_set(rng) for _ in range(SETS)]
    for text, (fold, names) in zip(sets, ours(sets), strict=True):
        peer = theirs(text)
        assert names is not None and sorted(names) == sorted(peer), text
        assert fold == str(peer), text
        if all(len(set(map(str.isdigit, n))) == 1 or sum(a.isdigit() < b.isdigit() for a, b in zip(n, n[1:])) < 2 for n in names):
            assert names == list(peer), text  # of one number: the order too


def test_names_come_back_unchanged(theirs):
    rng = random.Random(SEED)
    sets = [operand(rng) for _ in range(1000)]
    first = ours(sets)
    again = ours([fold for fold, _ in first])
    assert [n for _, n in first] == [n for _, n in again]
    assert all(set(names) == set(theirs(fold)) for fold, names in first)


def test_names_that_cannot_be_folded_are_no_trap(theirs):
    """1,177 of them took ClusterShell's tree 17 minutes (clustershell#559): its own fold is compared on fewer."""
    few = ",".join(f"n{i}m{i * 7 % 211}" for i in range(211))
    ((fold, _),) = ours([few])
    assert fold == str(theirs(few))


def test_both_refuse(theirs):
    sets = ["n[", "n]", "n[1", "n[1-]", "n[a]", "n[3-1]", "n[1-5/0]", "n[1-2],", ",n1", "n[01-3]", "n1!", "n[]", "n[1,]"]
    for text, (_, names) in zip(sets, ours(sets), strict=True):
        assert names is None, text
        with pytest.raises(Exception):
            print(theirs(text))
