#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: what a distributed PostgreSQL could not do is not in our SQL. Each rule catches a bad example first.

usage: test_sql.py SOURCE_ROOT
"""
import glob
import os
import re
import sys

SETS = r"(unnest|generate_series|generate_subscripts|json_array_elements(_text)?|json_each(_text)?|jsonb_\w+|regexp_split_to_table)"
failed = count = 0


def check(ok, what, lines=()):
    global failed, count
    count += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}")
    for line in lines:
        print("# " + line)


def tables(sql):
    """{name: its columns and constraints}"""
    return {m[1]: m[2] for m in re.finditer(r"CREATE TABLE (\w+) \((.*?)\)(?: WITH [^;]*| PARTITION BY [^;]*)?;", sql, re.S)}


def wrong_keys(sql):
    """Unique keys of `run` hold the column that is distributed by, and the one that partitions."""
    keys = re.findall(r"(?:PRIMARY KEY|UNIQUE) \((.*?)\)", tables(sql).get("run", ""))
    keys += re.findall(r"CREATE UNIQUE INDEX \w+ ON run[^(]*\((.*?)\)", sql)
    return [key for key in keys if not {"node", "measured"} <= set(re.split(r",\s*", key))]


def wrong_references(sql):
    """A distributed table can only refer to tables that are copied everywhere: ours refers to none."""
    return re.findall(r"\bREFERENCES\b.*|\bFOREIGN KEY\b.*", sql)


def wrong_sets(sql):
    """A function that gives rows stands beside `run` neither in FROM nor in LATERAL."""
    found = re.findall(r"\bLATERAL\b.*", sql)
    for m in re.finditer(r"(?:FROM|JOIN)\s+run\b[^;]*?(?:,|JOIN)\s*" + SETS + r"\(", sql):
        found.append(m[0])
    return found


WIDTHS = {"timestamptz": 8, "bigint": 8, "float8": 8, "int": 4, "int2": 2}


def wrong_order(sql):
    """Columns of `run` from wide to narrow, then texts and bytes, which need no alignment, then the array, which needs 4: no row
    has a hole of more than 3 bytes."""
    body = tables(sql).get("run", "")
    columns = re.findall(r"^  (\w+) (\w+(?:\[\])?)", body, re.M)
    places = [-WIDTHS.get(kind, 1 if not kind.endswith("[]") else 0) for _, kind in columns]
    return [f"{columns[i][0]} before {columns[i + 1][0]}" for i in range(len(places) - 1) if places[i] > places[i + 1]]


def c_texts(path):
    """The strings of a C file, those behind each other joined."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"//[^\n]*", "", f.read())
    return "\n".join("".join(re.findall(r'"((?:\\.|[^"\\])*)"', m[0]))
                     for m in re.finditer(r'"(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*', text))


RULES = {
    "each unique key of run has node and measured": (
        wrong_keys, "CREATE TABLE run (\n  node int,\n  PRIMARY KEY (node, seq)\n);"),
    "no table refers to another one": (wrong_references, "CREATE TABLE a (\n  b int REFERENCES c\n);"),
    "no column of run costs bytes of alignment": (wrong_order, "CREATE TABLE run (\n  node int,\n  seq bigint\n);"),
    "no function gives rows beside run": (wrong_sets, "SELECT 1 FROM run, unnest(run.v) AS x"),
}


def main(root):
    paths = sorted(glob.glob(os.path.join(root, "schema/fleet/pg/*.sql")))
    text = ""
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text += re.sub(r"--[^\n]*", "", f.read())
    check("run" in tables(text) and len(tables(text)) > 8, f"the tables are found ({len(tables(text))})")
    text += "\n".join(c_texts(p) for p in sorted(glob.glob(os.path.join(root, "fleet/store/*.c"))))
    check("FROM run" in text and "UPDATE feed" in text, "so are the statements")
    for what, (rule, bad) in RULES.items():
        check(rule(bad), f"a bad example is caught: {what}")
        wrong = rule(text)
        check(not wrong, what, wrong)
    lite = sorted(os.path.basename(p) for p in glob.glob(os.path.join(root, "schema/fleet/sqlite/*.sql")))
    check(lite == [os.path.basename(p) for p in paths], "both engines have the same steps")
    print(f"1..{count}")
    return failed != 0


sys.exit(main(sys.argv[1]))
