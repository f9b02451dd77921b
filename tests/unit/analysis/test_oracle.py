# SPDX-License-Identifier: Apache-2.0
"""Our statistics against scipy, our change points against Apache Otava. Both are oracles only: where they
cannot be imported, the test is skipped and says so. NUMAPROBE_ORACLE names the program to ask."""
import os
import random
import subprocess

import pytest

ORACLE = os.environ.get("NUMAPROBE_ORACLE")
pytestmark = pytest.mark.skipif(not ORACLE, reason="NUMAPROBE_ORACLE is not set")


def ask(lines):
    done = subprocess.run([ORACLE], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
    return [[float(x) for x in line.split()] for line in done.stdout.splitlines()]


def test_student_against_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    cases = [(t, df) for t in (0, 0.1, 1, 2.5, 4.6, 12, 40) for df in (1, 2.5, 6, 12.3, 28, 119, 1000)]
    for (t, df), (p,) in zip(cases, ask(f"t {t} {df}" for t, df in cases), strict=True):
        assert p == pytest.approx(2 * stats.t.sf(t, df), rel=1e-9, abs=1e-300), (t, df)
    cases = [(q, df) for q in (0.75, 0.975, 0.995, 0.9995) for df in (1, 6, 12.3, 119)]
    for (q, df), (x,) in zip(cases, ask(f"q {q} {df}" for q, df in cases), strict=True):
        assert x == pytest.approx(stats.t.ppf(q, df), rel=1e-7), (q, df)


def test_false_discovery_rate_against_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rng = random.Random(7)
    p = [rng.random() ** 3 for _ in range(120)]
    (ours,) = ask(["fdr 120 " + " ".join(map(repr, p))])
    assert ours == pytest.approx(list(stats.false_discovery_control(p)), rel=1e-12)


def test_change_points_against_otava():
    analysis = pytest.importorskip("otava.analysis", reason="apache-otava is not installed")
    rng = random.Random(11)
    print("seed 11")
    series, truth = [], []
    for _ in range(40):
        cuts = sorted(rng.sample(range(30, 170, 25), rng.choice((0, 1, 2))))
        level, v = 100.0, []
        for i in range(200):
            if i in cuts:
                level *= rng.choice((1.06, 1.10, 0.92))
            v.append(level * (1 + 0.01 * rng.gauss(0, 1)))
        series.append(v)
        truth.append(cuts)
    ours = ask(f"series {len(v)} " + " ".join(map(repr, v)) for v in series)
    agree = right = 0
    for v, mine, cuts in zip(series, ours, truth, strict=True):
        theirs = analysis.compute_change_points(v, window_len=50, max_pvalue=0.001, min_magnitude=0.03)
        points = theirs[0] if isinstance(theirs, tuple) else theirs
        other = sorted(p.index for p in points)
        agree += len(mine) == len(other) and all(abs(a - b) <= 2 for a, b in zip(mine, other))
        right += len(mine) == len(cuts) and all(abs(a - b) <= 2 for a, b in zip(mine, cuts))
    print(f"agree with Otava in {agree} of 40, with the truth in {right} of 40")
    assert right >= 38
    assert agree >= 36
