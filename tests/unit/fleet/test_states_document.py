# SPDX-License-Identifier: Apache-2.0
"""The tables of states in docs/COLLECTOR.md are those of fleet/collect/node_states.c and fleet/judge/finding_states.c."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_drawn_states_are_those_of_the_table():
    code = (ROOT / "fleet/collect/node_states.c").read_text()
    rows = re.findall(r'\[NODE_(\w+)\] = \{"(\w+)", (\d+), \{(.*?)\}\}', code, re.S)
    of_code = [[name, *(s.strip().removeprefix("NODE_").lower() for s in after.split(",")), int(wait)]
               for _, name, wait, after in rows]
    part = (ROOT / "docs/COLLECTOR.md").read_text().split("<!-- states -->")[1]
    of_document = [[c.strip("`") for c in line.strip("| ").split(" | ")] for line in part.strip().split("\n")[2:]]
    for row in of_document:
        row[-1] = int(row[-1].split()[0])
    assert len(of_code) == 6 and of_document == of_code


def test_the_drawn_states_of_findings_are_those_of_the_table():
    code = (ROOT / "fleet/judge/finding_states.c").read_text()
    rows = re.findall(r'\[KEPT_\w+\] = \{"(\w+)",\s*\{(.*?)\}\}', code, re.S)
    of_code = [[name, *(s.strip().removeprefix("KEPT_").lower() for s in after.split(","))] for name, after in rows]
    part = (ROOT / "docs/COLLECTOR.md").read_text().split("<!-- findings -->")[1]
    of_document = [[c.strip("`") for c in line.strip("| ").split(" | ")] for line in part.strip().split("\n")[2:]]
    assert len(of_code) == 6 and of_document == of_code
