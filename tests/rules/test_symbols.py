#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: what the object files need of each other: no circle of calls, no call against the order of the rooms, and no
function or table that only tests use.

usage: test_symbols.py BUILD_ROOT
"""
import json
import os
import re
import subprocess
import sys

import rules
from tap import check, end

# Defined for all, and used by tests or by nothing that we build: why it stays.
UNUSED = {
    "main": "the C library calls it",
    "__lsan_is_turned_off": "the sanitizer calls it",
    "__tsan_default_options": "the sanitizer calls it",
    "comm_mpi": "looked up by name in the module that numa_bench loads",
    # Tables that tests compare with a document.
    "condition_kinds": "docs/API.md and docs/ADMISSION.md",
    "severity_names": "docs/API.md and docs/ADMISSION.md",
    "facts_info": "docs/FACTS.md, and the weights of changes",
    "metric_rules": "docs/METRICS.md",
    # Steps whose cases cannot all be reached through the function that calls them.
    "audit_may_write": "the limit per client, at times that a test chooses",
    "core_clock_step_cycles": "processors that no test machine has",
    "connection_cut": "a connection that is cut while it waits; a full listener cuts another one",
    "peer_client_of_address": "addresses that no test machine has",
    "place_usage_from": "memory on nodes that no test machine has",
    "place_verify_from": "each way of finding a page's node; the first that works hides the others",
    "proofs_text": "events of counters that no test machine has",
    "route_match": "patterns, one by one",
    "stats_between_visits": "differences between visits, without those within one",
    # Virtual nodes, for programs and for tests/fleet.
    "virtual_serve": "tests/fleet/vnodes.c",
    "virtual_options": "tests/fleet/vnodes.c",
    # Requests to many nodes at once.
    "fetch_run": "tests/unit/fetch/test_many.c",
    "srv_read": "any bytes as a response of DNS, by tests/fuzz",
    # The store of a fleet, for the collector.
    "fleet_store_version": "tests/unit/fleet/test_store.c",
    # tests/perf measures with them.
    "perm_init_rounds": "the cost of more rounds",
}


def objects(build):
    """[(path of the source from the root, path of the object)]"""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    root = os.path.dirname(os.path.commonprefix([os.path.join(c["directory"], c["file"]) for c in commands]))
    found = []
    for command in commands:
        source = os.path.normpath(os.path.join(command["directory"], command["file"]))
        item = os.path.join(command["directory"], command["output"])
        if source.endswith(".c") and os.path.exists(item):
            found.append((source, item))
    while root and not os.path.exists(os.path.join(root, "meson_options.txt")):
        root = os.path.dirname(root)
    return [(os.path.relpath(source, root), item) for source, item in found]


def symbols(paths):
    """{path of an object: (defined, needed)}: names of the symbols that the linker sees."""
    listed = subprocess.run(["nm", "--format=posix", "--print-file-name", *paths], capture_output=True, text=True,
                            check=True).stdout
    found = {path: (set(), set()) for path in paths}
    for line in listed.splitlines():
        path, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        defined, needed = found[path]
        if kind == "U":
            needed.add(name)
        elif kind in "TDBRVC":
            defined.add(name)
    return found


class Tree:
    """Modules of the programs: what each defines, and whose symbols it needs."""

    def __init__(self, found):
        self.home, self.needs = {}, {}
        for source, (defined, needed) in found:
            module = rules.module(source)
            if not source.startswith("tests/"):
                self.home.update({name: module for name in defined})
                self.needs.setdefault(module, set()).update(needed)

    def arrows(self):
        return {module: {self.home[name] for name in needed if name in self.home} - {module}
                for module, needed in self.needs.items()}

    def circles(self):
        return rules.circles(self.arrows())

    def against_the_order(self):
        """Calls into a room that the caller must not include."""
        wrong = []
        for module, others in self.arrows().items():
            room = rules.room(module)
            for other in others:
                if room not in rules.MAY_INCLUDE or rules.room(other) not in rules.MAY_INCLUDE:
                    continue
                if not rules.may_include(module, other + ".h") or (
                        rules.room(other) == room and room in rules.INNER
                        and rules.inner_floor(other) > rules.inner_floor(module)):
                    wrong.append(f"{module} calls {other}")
        return sorted(wrong)

    def calls_out_of(self, parts):
        """Calls from modules in these folders and files to others."""
        def within(module):
            return any(module + ".c" == part or module.startswith(part + "/") for part in parts)
        return sorted(f"{module} calls {other}" for module, others in self.arrows().items() if within(module)
                      for other in others if not within(other))

    def used(self):
        return {name for module, needed in self.needs.items() for name in needed if self.home.get(name, module) != module}

    def unused(self):
        used = self.used()
        return sorted(f"{module}: {name}" for name, module in self.home.items()
                      if name not in used and name not in UNUSED
                      and not name.startswith("__") and rules.room(module) in rules.MAY_INCLUDE)


def check_bad_examples():
    circle = Tree([("core/os/a.c", ({"a"}, {"b"})), ("core/os/b.c", ({"b"}, {"c"})), ("core/os/c.c", ({"c"}, {"a"}))])
    check(circle.circles() == [{"core/os/a", "core/os/b", "core/os/c"}], "a circle of three is found")
    up = Tree([("core/os/a.c", ({"a"}, {"b"})), ("core/run/b.c", ({"b"}, {"a", "d"})), ("model/c.c", ({"c"}, {"a"}))])
    check(up.against_the_order() == ["core/os/a calls core/run/b", "model/c calls core/os/a"], "calls upwards are found")
    check(up.calls_out_of(["core/os", "model/c.c"]) == ["core/os/a calls core/run/b"],
          "calls out of a part are found")
    idle = Tree([("core/os/a.c", ({"a", "b", "main"}, {"b"})), ("daemon/c.c", ({"c"}, {"a", "c"})),
                 ("tests/unit/t.c", (set(), {"b", "c"}))])
    check(idle.unused() == ["core/os/a: b", "daemon/c: c"], "what only tests use is found")


def check_libraries(build):
    """A program of a node is linked with no library of the collector, and the daemon not with libcurl."""
    for program, without in (("daemon/numaprobed", "libpq libcurl"), ("bench/numa_bench", "libpq libcurl libsqlite3"),
                             ("client/numaprobe", "libpq libsqlite3 libmicrohttpd")):
        said = subprocess.run(["readelf", "-dW", os.path.join(build, program)], capture_output=True, text=True, check=True).stdout
        linked = re.findall(r"\(NEEDED\).*\[(lib[\w+-]+)\.so", said)
        wrong = sorted(set(linked) & set(without.split()))
        check(linked and not wrong, f"{program} is linked without {without}", wrong)


def portable_parts():
    """What tests/emulated compiles for processors without libraries."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emulated", "test_emulated.py")
    with open(path, encoding="utf-8") as f:
        return re.search(r'^PORTABLE = "([^"]+)"$', f.read(), re.M).group(1).split()


def main(build):
    check_bad_examples()
    check_libraries(build)
    sources = objects(build)
    found = symbols([item for _, item in sources])
    tree = Tree([(source, found[item]) for source, item in sources])
    check(len(tree.needs) > 100, f"the objects are found ({len(tree.needs)} modules)")
    wrong = tree.circles()
    check(not wrong, "no modules call each other in a circle", [", ".join(sorted(part)) for part in wrong])
    wrong = tree.against_the_order()
    check(not wrong, "calls go down the rooms as includes do", wrong)
    wrong = tree.calls_out_of(portable_parts())
    check(not wrong, "what is tested on each processor calls nothing that needs a library", wrong)
    wrong = tree.unused()
    check(not wrong, "what is defined for all is used outside tests", wrong)
    wrong = sorted(tree.used() & set(UNUSED))
    check(not wrong, "what is used elsewhere needs no reason: take it off UNUSED", wrong)
    return end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
