# SPDX-License-Identifier: Apache-2.0
"""The limits that docs/COLLECTOR.md promises are those of the code. That each is kept is tested where it is used."""
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROOMS = ("analysis", "fetch", "fleet", "formats", "http", "model", "nodes")
KIB, MIB, SECOND, MINUTE = 1 << 10, 1 << 20, 1000, 60 * 1000
# The numbers of a row in their order: the constants, and the unit in which the document counts them.
LIMITS = {
    "a page of a node": [("PAGE_RUNS", 1), ("FETCH_BODY_MAX", MIB)],
    "a page of another collector": [("COLLECTOR_RUNS", 1), ("FETCH_BODY_MAX", MIB)],
    "received and not stored": [("INGEST_BACKLOG_MAX", MIB)],
    "runs and notes of a node": [("RUNS_AT_ONCE", 1), ("RUNS_PER_DAY", 1)],
    "what a node brings": [("FLEET_STORE_NEW_MAX", 1)],
    "nodes": [("NAMING_NODES_MAX", 1), ("FLEETD_SOURCES_MAX", 1), ("GONE_MAX", 1)],
    "months of runs that `keep_days` deletes, and of whole runs that `archive_keep_days` does": [("FLEET_RETAIN_MONTHS", 1)],
    "a list of nodes": [("FETCH_BODY_MAX", MIB), ("LIST_MAX", MIB), ("NAMING_LIMIT_MS", SECOND), ("NAMING_MEMORY", MIB)],
    "the names of `where` in a request": [("NODESET_MEMBERS_MAX", 1)],
    "the names of `nodes` in a campaign": [("NODESET_NAMES_MAX", 1)],
    "memory of a process": [("INGEST_MEMORY", MIB)],
    "runs of a node that are compared": [("NODE_ROOM", MIB), ("RUNS_ROOM", MIB), ("SHARE_ROOM", KIB)],
    "tables of what is compared": [("TABLES_ROOM", MIB)],
    "a response about the history": [("WORKER_DEADLINE_MS", SECOND), ("WORKER_CPU_MS", SECOND),
                                     ("WORKER_DEADLINES * WORKER_DEADLINE_MS", MINUTE)],
}


@functools.cache
def constants():
    """Name -> expression of each constant of an enum; a name that stands for several is left out."""
    found = {}
    for path in sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.[ch]")):
        for name, value in re.findall(r"\b([A-Z][A-Z0-9_]+) =\s+([\w<*+() -]+?)(?=,| })", path.read_text()):
            found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def value_of(expression, known):
    numbers = re.sub(r"[A-Z][A-Z0-9_]+", lambda m: str(value_of(known[m.group()], known)), expression)
    assert re.fullmatch(r"[\d<*+() -]+", numbers), (expression, numbers)
    return eval(numbers)


def documented():
    table = (ROOT / "docs/COLLECTOR.md").read_text().split("| limit | value |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.split("\n")]
    return {name: [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\d|\d", value)] for name, value in rows}


def test_each_row_has_its_constants():
    assert set(documented()) == set(LIMITS)


@pytest.mark.parametrize("row", LIMITS)
def test_the_documented_limits_are_those_of_the_code(row):
    known = constants()
    assert documented()[row] == [value_of(limit, known) / unit for limit, unit in LIMITS[row]]


def test_all_processes_have_the_same_memory():
    known = constants()
    assert value_of("WORKER_MEMORY", known) == value_of("INGEST_MEMORY", known)
