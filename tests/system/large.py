# SPDX-License-Identifier: Apache-2.0
"""Runs as large as can be stored, as documents to import, and what asks for them from many connections."""
import random

FIELDS = ("n", "disturbed", "median", "lo", "hi", "min", "p10", "p90", "p99", "mean", "sd", "overlap", "converged")


def cell(median, overlap):
    values = (200, 1, median, median * .99, median * 1.01, median * .9, median * .95, median * 1.05,
              median * 1.1, median * 1.001, median * .02)
    texts = [f'"{name}":{value:.3f}' if name not in ("n", "disturbed") else f'"{name}":{value}'
             for name, value in zip(FIELDS, values)]
    return "{" + ",".join(texts) + (',"overlap":0.9876' if overlap else ',"overlap":null') + ',"converged":1}'


def matrix(name, ranks, sizes, rng):
    rows = []
    for _ in range(ranks):
        rows.append("[" + ",".join(cell(5 + 2 * size + rng.random() * (1 + size / 20), name == "concurrent")
                                   for size in range(sizes)) + "]")
    axis = '"rows":{"name":"rank","unit":"","values":[%s]},"cols":{"name":"working_set","unit":"bytes","values":[%s]}' % (
        ",".join(map(str, range(ranks))), ",".join(str((i + 1) << 20) for i in range(sizes)))
    return '{"name":"%s","quantity":"latency","unit":"ns",%s,"cells":[%s]}' % (name, axis, ",".join(rows))


def document(ranks=1024, sizes=48, modes=("concurrent", "serial"), seed=1):
    """Matrices as JSON. The largest is 20 MB."""
    rng = random.Random(seed)
    return '{"matrices":[%s]}' % ",".join(matrix(name, ranks, sizes, rng) for name in modes)


def store(daemon, node="large", **kw):
    """Imports such a run, and gives its number."""
    answer = daemon.request("POST", f"/v1/imports?node={node}", document(**kw), {"Content-Type": "application/json"})
    assert answer.status in (200, 201), answer.body
    return answer.json["id"]
