#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/STORAGE.md run on the schema, and those on a measured run find something; it tells each table and index."""
import os
import re
import sqlite3
import sys

ROOT = sys.argv[1]


def fill(db):
    db.execute("INSERT INTO fingerprint VALUES ('h', 'config', '{\"hash\":\"h\",\"facts\":{\"thp\":\"never\"}}')")
    db.execute("INSERT INTO run (id, seq, state, benchmark, node, created_ms, config_hash, spec) "
               "VALUES (1, 1, 'succeeded', 'latency', 'n1', 1700000000000, 'h', '{}')")
    db.execute("INSERT INTO matrix VALUES (1, 0, 'concurrent', 'latency', 'ns', '{\"values\":[0]}', "
               "'{\"values\":[1048576,2097152]}')")
    db.execute("INSERT INTO rank VALUES (1, 0, 99, 4, 4, 0, 0, 1, 0.5, 8, 8, 'move_pages', 'thp', 'thp', 1, 1, 0, 32768, 0, '[]', 0, 3, 4)")
    db.execute("INSERT INTO series VALUES (1, 'latency.local.dram.median_ns', 'n1', '', 'ns', 0)")
    db.execute("INSERT INTO metric VALUES (1, 1700000000000, 1, 98123, 97000, 99000)")
    for col in range(2):
        db.execute("INSERT INTO cell VALUES (1, 0, 0, ?, 11, 0, ?, 1, 2, 3, 4, 5, 6, 7, 8, 9000, 0, 990, 10, 360000, 1, NULL)",
                   (col, 98123 + col))


def main():
    with open(f"{ROOT}/docs/STORAGE.md", encoding="utf-8") as f:
        text = f.read()
    examples = re.findall(r"```sql\n(.*?)```", text, re.S)
    db = sqlite3.connect(":memory:")
    for name in sorted(os.listdir(f"{ROOT}/schema/sql")):
        with open(f"{ROOT}/schema/sql/{name}", encoding="utf-8") as f:
            db.executescript(f.read())
    fill(db)
    failed, number = 0, 0
    for number, sql in enumerate(examples, 1):
        try:
            rows = db.execute(sql).fetchall()
        except sqlite3.Error as e:
            rows = []
            print(f"# {e}")
        failed += not rows
        print("ok" if rows else "not ok", number, "-", sql.split("\n")[0][:60])
    number += 1
    line = db.execute("SELECT rank, cpu, mem_node, working_set_bytes, median_ns FROM measurement").fetchall()
    good = line == [(0, 4, 1, 1048576, 98.123), (0, 4, 1, 2097152, 98.124)]
    failed += not good
    print("ok" if good else "not ok", number, "- the view gives the numbers in ns")
    number += 1
    for kind, heading in (("index", "Indexes"), ("table", "Tables")):
        told = [name for row in re.findall(r"^\| (`.*?) \|", text.split(f"\n## {heading}\n")[1].split("\n## ")[0], re.M)
                for name in re.findall(r"`(\w+)`", row)]
        there = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'", (kind,))]
        good = sorted(told) == sorted(there)
        failed += not good
        print("ok" if good else "not ok", number, f"- each {kind} is told once, and no other")
        if not good:
            print("#", sorted(set(told) ^ set(there)))
        number += 1
    for view in ("measurement", "history"):
        told = re.findall(r"`(\w+)`", re.search(rf"The view \*\*`{view}`\*\*[^:]*:(.*?)\.\n", text, re.S)[1])
        there = [name for name, in db.execute("SELECT name FROM pragma_table_info(?)", (view,))]
        failed += told != there
        print("ok" if told == there else "not ok", number, f"- the columns of {view}")
        number += 1
    version = len(os.listdir(f"{ROOT}/schema/sql"))
    good = f"user_version={version};" in text and f"numaprobe.db.v{version - 1}.bak" in text
    failed += not good
    print("ok" if good else "not ok", number, f"- the schema's version is told as {version}")
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
