# SPDX-License-Identifier: Apache-2.0
"""Our statistics against scipy, our change points against Apache Otava. Both are oracles only: where they
cannot be imported, the test is skipped and says so. NUMAPROBE_ORACLE names the program to ask,
NUMAPROBE_OTAVA the directory that tools/otava.sh made."""
import csv
import glob
import os
import random
import re
import subprocess
import sys

import pytest

ORACLE = os.environ.get("NUMAPROBE_ORACLE")
pytestmark = pytest.mark.skipif(not ORACLE, reason="NUMAPROBE_ORACLE is not set")


# Pure Python, so that any python3 can use it; the system's own numpy and scipy come first.
sys.path += glob.glob(os.path.join(os.environ.get("NUMAPROBE_OTAVA", "/nonexistent"), "lib/python3*/site-packages"))


def otava():
    return pytest.importorskip("otava.analysis", reason="apache-otava is not there; tools/otava.sh gets it")


def otava_points(analysis, v):
    found = analysis.compute_change_points(v, window_len=50, max_pvalue=0.001, min_magnitude=0.03)
    points = found[0] if isinstance(found, tuple) else found
    return sorted(p.index for p in points)


def close(mine, other):
    return len(mine) == len(other) and all(abs(a - b) <= 2 for a, b in zip(mine, other))


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


def test_upper_tail_against_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    cases = [(t, df) for t in (-9, -2.5, 0, 0.1, 2.5, 8, 40) for df in (1, 2.59, 12.3, 119, 3700)]
    for (t, df), (p,) in zip(cases, ask(f"upper {t} {df}" for t, df in cases), strict=True):
        assert p == pytest.approx(stats.t.sf(t, df), rel=1e-8, abs=1e-300), (t, df)


def test_cauchy_combination():
    """Against scipy's Cauchy distribution; a p above 0.99 counts as 0.99."""
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rng = random.Random(8)
    print("seed 8")
    lists = [[rng.random() ** power for _ in range(30)] for power in (1, 3, 9, 40)] + [[1e-15, 1.0], [0.5], [1.0, 1.0]]
    for p, (ours,) in zip(lists, ask(f"cauchy {len(p)} " + " ".join(map(repr, p)) for p in lists), strict=True):
        mean = sum(stats.cauchy.isf(min(x, 0.99)) for x in p) / len(p)
        assert ours == pytest.approx(stats.cauchy.sf(mean), rel=1e-7), p


def by_definition(p):
    """Benjamini and Hochberg: the smallest rate at which each would be called, straight from the definition."""
    n = len(p)
    return [min(1.0, min(q * n / sum(r <= q for r in p) for q in p if q >= x)) for x in p]


def test_false_discovery_rate():
    rng = random.Random(7)
    p = [rng.random() ** 3 for _ in range(120)]
    (ours,) = ask(["fdr 120 " + " ".join(map(repr, p))])
    assert ours == pytest.approx(by_definition(p), rel=1e-12)
    try:
        from scipy.stats import false_discovery_control  # since scipy 1.11; the definition is oracle enough
    except ImportError:
        return
    assert ours == pytest.approx(list(false_discovery_control(p)), rel=1e-12)


def test_change_points_against_otava():
    analysis = otava()
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
        agree += close(mine, otava_points(analysis, v))
        right += close(mine, cuts)
    print(f"agree with Otava in {agree} of 40, with the truth in {right} of 40")
    assert right >= 38
    assert agree >= 36


# What benchmarks' histories look like, as examples of such tools show them: quiet, a regression, one that is
# mended, an improvement in steps, a spike, a noisier second half.
def shapes(rng):
    def noise(n, level, spread=0.01):
        return [level * (1 + spread * rng.gauss(0, 1)) for _ in range(n)]

    spike = noise(80, 100)
    spike[37] = 250.0
    yield "quiet", noise(80, 100), []
    yield "regression", noise(50, 100) + noise(40, 110), [50]
    yield "halved", noise(30, 1.0, 0.05) + noise(30, 0.5, 0.05), [30]
    yield "mended", noise(40, 100) + noise(25, 120) + noise(40, 100), [40, 65]
    yield "steps", noise(35, 200) + noise(35, 180) + noise(35, 150), [35, 70]
    yield "spike", spike, []
    yield "noisier", noise(50, 100) + noise(50, 100, 0.03), []


def test_example_shapes():
    """Ours alone against the truth: needs no oracle."""
    print("seed 12")
    cases = list(shapes(random.Random(12)))
    for (name, v, cuts), mine in zip(cases, ask(f"series {len(v)} " + " ".join(map(repr, v)) for _, v, _ in cases),
                                     strict=True):
        assert close(mine, cuts), (name, mine, cuts)


def test_example_shapes_against_otava():
    analysis = otava()
    print("seed 12")
    cases = list(shapes(random.Random(12)))
    answers = ask(f"series {len(v)} " + " ".join(map(repr, v)) for _, v, _ in cases)
    for (name, v, _), mine in zip(cases, answers, strict=True):
        theirs = otava_points(analysis, v)
        if name == "spike":  # a t test over windows may take a spike for two changes; ours must not
            assert mine == []
        else:
            assert close(mine, theirs), (name, mine, theirs)


def published():
    """Otava's example series, from the source that tools/otava.sh unpacked: those of its guide and the long
    ones of its own tests."""
    source = os.path.join(os.environ.get("NUMAPROBE_OTAVA", "/nonexistent"), "source")
    path = os.path.join(source, "examples/csv/data/local_sample.csv")
    if not os.path.exists(path):
        pytest.skip("apache-otava's examples are not there; tools/otava.sh gets them")
    with open(path, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    series = [[float(row[metric]) for row in rows] for metric in ("metric1", "metric2")]
    with open(os.path.join(source, "tests/analysis_test.py"), encoding="utf-8") as f:
        lists = re.findall(r"series = \[([-0-9., \n]+)\]", f.read())
    long = [[float(x) for x in text.replace(",", " ").split()] for text in lists]
    return series, [v for v in long if len(v) >= 20]


def test_published_series_against_otava():
    analysis = otava()
    guide, long = published()
    assert len(guide[0]) == 10 and long
    # Ten runs are too few for us, who want five on each side: measured twice as often, they are enough.
    twice = [[x for x in v for _ in range(2)] for v in guide]
    cases = twice + long
    theirs = [otava_points(analysis, v) for v in cases]
    assert theirs[0] == [] and theirs[1] == [12] and all(theirs[2:])
    for v, mine, other in zip(cases, ask(f"series {len(v)} " + " ".join(map(repr, v)) for v in cases), theirs,
                              strict=True):
        assert close(mine, other), (v, mine, other)
    assert ask(f"series {len(v)} " + " ".join(map(repr, v)) for v in guide) == [[], []]
