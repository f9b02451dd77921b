# SPDX-License-Identifier: Apache-2.0
"""The house rules as functions: each takes {path: text} and returns what is wrong, a line each.

A rule that cannot fail is no rule: test_rules.py feeds each of them a bad example first.
"""
import collections
import hashlib
import os
import re
import statistics
import subprocess

# Who may include whom (docs/ARCHITECTURE.md): rooms, or an inner room or a header of one. tests/ may include everything.
MAY_INCLUDE = {
    "base": set(),
    "model": {"base"},
    "formats": {"base", "model"},
    "analysis": {"base", "model"},
    "bench": {"base", "model", "formats", "analysis"},
    "fetch": {"base"},
    "virtual": {"base", "model"},
    "nodes": {"base", "model"},
    "client": {"base", "model", "formats", "analysis", "fetch", "nodes", "virtual"},
    "core": {"base", "model", "analysis", "schema"},
    "http": {"base", "model/token.h", "core/os"},
    "api": {"base", "model", "formats", "analysis", "core", "http"},
    "daemon": {"base", "core", "http", "api"},
    "fleet": {"base", "model", "analysis", "schema", "core/os", "fetch", "http", "nodes"},
    # Stricter than, or beside, their room.
    "fleet/store": {"base", "model", "analysis", "schema", "core/store/sqlite.h", "core/store/migrate.h"},
}

# The rooms within a room: each includes those before it, and never one after it. A file that lies in the folder
# itself (bench/main.c) is above them all.
INNER = {
    "analysis": ("stats", "compare", "metrics", "peers", "report", "plot"),
    "bench": ("kernels", "memory", "sampling", "ranks", "session", "benchmarks"),
    "core": ("os", "node", "store", "launch", "admission", "results", "run", "upkeep"),
    "http": ("messages", "access", "server"),
    "api": ("services", "resources"),
    "fleet": ("judge", "store", "settings", "collect", "campaigns", "services", "resources"),
}

# One door a library: in each room named, one file includes it; elsewhere none.
DOORS = {
    r"sqlite3\.h": {"core"},
    r"microhttpd\.h": {"http"},
    r"gnutls/.*\.h": {"http"},
    r"mpi\.h": {"bench"},
    r"hwloc(/.*)?\.h": {"core"},
    r"numa(if)?\.h": {"core", "bench"},
    r"curl/.*\.h": {"fetch"},
    r"libpq-fe\.h": {"fleet"},
    r"zstd\.h": {"fleet"},
    r"zlib\.h": {"fleet"},
    r"(cjson/)?cJSON\.h": {"base"},
    r"sha256\.h": {"model"},
}

ALL = {name for name in MAY_INCLUDE if "/" not in name}
# call -> (rooms where it must not stand, why)
DENIED = {
    "setlocale": (ALL, "numbers would follow the locale"),
    "system": (ALL, "no shell is ever given a string"),
    "popen": (ALL, "no shell is ever given a string"),
    "sleep": (ALL - {"bench"}, "wait on a descriptor instead"),
    "usleep": (ALL - {"bench"}, "wait on a descriptor instead"),
    "nanosleep": (ALL - {"bench"}, "wait on a descriptor instead"),
    "strcpy": (ALL, "knows no bounds; use base/str.h"),
    "strcat": (ALL, "knows no bounds; use base/buf.h"),
    "sprintf": (ALL, "knows no bounds; use snprintf or base/buf.h"),
    "vsprintf": (ALL, "knows no bounds; use vsnprintf or base/buf.h"),
    "gets": (ALL, "knows no bounds"),
    "atoi": (ALL, "cannot fail; use base/str.h"),
    "atol": (ALL, "cannot fail; use base/str.h"),
    "atof": (ALL, "cannot fail; use base/str.h"),
    "strtok": (ALL, "keeps hidden state"),
    "rand": (ALL, "a seed must be reported and reproducible"),
    "random": (ALL, "a seed must be reported and reproducible"),
    "gmtime": (ALL, "keeps hidden state; use gmtime_r"),
    "localtime": (ALL, "times are UTC"),
    "exit": ({"base", "model", "formats", "analysis", "core", "api"}, "a library returns an error"),
    "printf": ({"model", "formats", "analysis", "core", "api"}, "stdout belongs to the program"),
    "puts": ({"model", "formats", "analysis", "core", "api"}, "stdout belongs to the program"),
    "fopen": ({"model", "formats", "analysis"}, "pure rooms do no I/O"),
    "open": ({"model", "formats", "analysis"}, "pure rooms do no I/O"),
    "read": ({"model", "formats", "analysis"}, "pure rooms do no I/O"),
    "write": ({"model", "formats", "analysis"}, "pure rooms do no I/O"),
    "time": ({"model", "formats", "analysis"}, "pure rooms have no clock"),
    "clock_gettime": ({"model", "formats", "analysis"}, "pure rooms have no clock"),
}

MEDIAN_LINES, MOST_LINES = 20, 80


# Files of other projects, as they were published: their SOURCE has origin and hashes (vendored_unchanged). No rule about
# layout or language holds for them.
VENDORED = ("web/vendor/uPlot/",)


def is_ours(path):
    return not path.startswith(VENDORED) or path.endswith("/SOURCE")


def room(path):
    return path.split("/")[0]


def is_c(path):
    return path.endswith((".c", ".h"))


def in_rooms(files):
    return {p: t for p, t in files.items() if is_c(p) and room(p) in MAY_INCLUDE}


def includes(text):
    """[(line number, '<' or '"', name)]"""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            found.append((number, match[1], match[2]))
    return found


def may_include(path, name):
    allowed = MAY_INCLUDE.get(os.path.dirname(path), MAY_INCLUDE[room(path)])
    return any(name == a or name.startswith(a + "/") for a in allowed | {room(path)})


def include_directions(files):
    wrong = []
    for path, text in in_rooms(files).items():
        for number, kind, name in includes(text):
            if kind == '"' and not may_include(path, name):
                wrong.append(f"{path}:{number}: {room(path)} must not include {name}")
    return wrong


def inner_directions(files):
    wrong = []
    for path, text in in_rooms(files).items():
        top, inner = room(path), inner_room(path)
        if top in INNER and inner is not None and inner not in INNER[top]:
            wrong.append(f"{path}: {top} has no room {inner}")
            continue
        for number, kind, name in includes(text):
            if kind == '"' and room(name) == top and inner_floor(name) > inner_floor(path):
                wrong.append(f"{path}:{number}: {top}/{inner} must not include {name}, which lies above it")
    return wrong


def inner_room(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None


def inner_floor(path):
    rooms = INNER.get(room(path), ())
    inner = inner_room(path)
    return rooms.index(inner) if inner in rooms else len(rooms)


def include_roots(files):
    wrong = []
    for path, text in files.items():
        if not is_c(path):
            continue
        for number, kind, name in includes(text):
            if kind == '"' and name not in files:
                wrong.append(f'{path}:{number}: "{name}" is not a path from the root')
    return wrong


def one_door(files):
    wrong = []
    for header, rooms in DOORS.items():
        doors = {}
        for path, text in in_rooms(files).items():
            for number, _, name in includes(text):
                if re.fullmatch(header, name):
                    doors.setdefault(room(path), set()).add(path)
                    if room(path) not in rooms:
                        wrong.append(f"{path}:{number}: <{name}> belongs to {sorted(rooms)}")
        for where, paths in doors.items():
            if len(paths) > 1:
                wrong.append(f"{header} has {len(paths)} doors in {where}: {sorted(paths)}")
    return wrong


def bare(text):
    """C without comments, strings and characters, with the same lines."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        lines = "\n" * match[0].count("\n")
        return '""' + lines if match[0][0] == '"' else " " + lines
    return token.sub(blank, text)


def denied_calls(files):
    wrong = []
    for path, text in in_rooms(files).items():
        for number, line in enumerate(bare(text).splitlines(), 1):
            for call in re.findall(r"(?<![\w.>])(\w+)\s*\(", line):
                rooms, why = DENIED.get(call, (set(), ""))
                if room(path) in rooms:
                    wrong.append(f"{path}:{number}: {call}(): {why}")
    return wrong


def log_values(files):
    """A text between quotes of the log could end them, unless log_quote() made it. Literals of a format are as they are."""
    wrong = []
    for path, text in in_rooms(files).items():
        for call in re.finditer(r"\blog_event\((?:\"(?:\\.|[^\"\\])*\"|[^\";])*;", text):
            formats = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', call[0]))
            texts = sum(len(re.findall(r"%[^a-z%]*s", value)) for value in formats.split('\\"')[1::2])
            if texts > call[0].count("log_quote("):
                line = text.count("\n", 0, call.start()) + 1
                wrong.append(f"{path}:{line}: log_event() has a text between quotes without log_quote()")
    return wrong


def function_sizes(text):
    """[(name, first line, lines)] of clang-formatted C: a body opens and closes in column 0."""
    sizes = []
    lines = bare(text).splitlines()
    opened = None
    for at, line in enumerate(lines):
        if line == "{":
            opened = at
            first = at
            while first > 0 and re.match(r"[^\s#}]|\s+\S", lines[first - 1]) and \
                    not lines[first - 1].rstrip().endswith((";", "}")):
                first -= 1
        elif line.startswith("}") and opened is not None:
            names = re.findall(r"(\w+)\s*\(", " ".join(lines[first:opened]))
            names = [n for n in names if n != "__attribute__"] or ["?"]
            sizes.append((names[0], first + 1, at - first + 1))
            opened = None
    return sizes


def function_lines(files):
    wrong, all_sizes = [], []
    for path, text in files.items():
        if not is_c(path):
            continue
        for name, first, size in function_sizes(text):
            all_sizes.append(size)
            if size > MOST_LINES:
                wrong.append(f"{path}:{first}: {name} has {size} lines, at most {MOST_LINES}")
    if all_sizes and statistics.median(all_sizes) > MEDIAN_LINES:
        wrong.append(f"the median function has {statistics.median(all_sizes)} lines, "
                     f"at most {MEDIAN_LINES}")
    return wrong


def licence_headers(files):
    wrong = []
    for path, text in files.items():
        named = path.endswith((".c", ".h", ".py", ".sh", ".sql", ".service", ".service.in",
                               "meson.build", "Dockerfile")) or path.startswith(tuple(WEB_TABLES)) and path.endswith((".js", ".css", ".html"))
        if is_ours(path) and (named or text.startswith("#!")) and text.strip() and \
                "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:4]):
            wrong.append(f"{path}: no SPDX-License-Identifier: Apache-2.0 in its first lines")
    return wrong


def white_space(files):
    wrong = []
    for path, text in files.items():
        if not is_ours(path) or path.startswith("tests/fuzz/corpus/") or path.startswith("tests/") and "/data/" in path:
            continue  # recordings stay as they were recorded, and inputs of a fuzzer as it found them
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip(" \t\r"):
                wrong.append(f"{path}:{number}: white space at the end")
            if "\t" in line and is_c(path):
                wrong.append(f"{path}:{number}: a tab")
        if text and not text.endswith("\n"):
            wrong.append(f"{path}: no newline at the end")
    return wrong


def texts_end(files):
    """C drops the end of a text that fills its array to the last byte, and compilers say nothing."""
    wrong = []
    for path, text in files.items():
        for match in re.finditer(r'char \w+\[(\d+)\]\s*=\s*"((?:[^"\\]|\\.)*)"', text if is_c(path) else ""):
            if len(re.sub(r"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)", "c", match[2])) >= int(match[1]):
                wrong.append(f"{path}: {match[0]} has no room for its end")
    return wrong


# Spelled in halves, so that this file passes its own rule.
FORBIDDEN = {
    "/wo" + "rk/": "a path of one machine",
    "TO" + "DO": "do it, or open an issue",
    "FIX" + "ME": "fix it, or open an issue",
    "XX" + "X ": "say what is meant",
    "<<<<" + "<<< ": "a marker of a merge",
    ">>>>" + ">>> ": "a marker of a merge",
}


def forbidden_words(files):
    wrong = []
    for path, text in files.items():
        for number, line in enumerate(text.splitlines() if is_ours(path) else [], 1):
            for word, why in FORBIDDEN.items():
                if word in line:
                    wrong.append(f"{path}:{number}: {word.strip()}: {why}")
    return wrong


def dockerfile(files):
    """What hadolint would say, as far as it matters here."""
    wrong = []
    for path, text in files.items():
        if os.path.basename(path) != "Dockerfile":
            continue
        lines = [l for l in re.sub(r"\\\n", " ", text).splitlines()
                 if l.strip() and not l.startswith("#")]
        words = [(l.split()[0].upper(), l) for l in lines]
        stages = [l for w, l in words if w == "FROM"]
        if len(stages) < 2:
            wrong.append(f"{path}: build and run in stages of their own")
        for line in stages:
            image = line.split()[1]
            if ":" not in image or image.endswith(":latest"):
                wrong.append(f"{path}: {image}: name the release of the base")
        users = [l.split()[1] for w, l in words if w == "USER"]
        if not users or users[-1].split(":")[0] in ("root", "0"):
            wrong.append(f"{path}: the daemon must not be root")
        for need in ("HEALTHCHECK", "ENTRYPOINT", "LABEL", "VOLUME", "EXPOSE"):
            if need not in (w for w, _ in words):
                wrong.append(f"{path}: no {need}")
        for word, line in words:
            if word == "ADD":
                wrong.append(f"{path}: COPY says what it does, ADD does not")
            if word in ("ENTRYPOINT", "CMD") and "[" not in line:
                wrong.append(f"{path}: {word} as a list: no shell in between")
            if "apt-get install" in line and "--no-install-recommends" not in line:
                wrong.append(f"{path}: apt-get install without --no-install-recommends")
            if word == "RUN" and ("apt-get" in line or "packages_install" in line) and \
                    "rm -rf /var/lib/apt/lists" not in line:
                wrong.append(f"{path}: the package lists stay in the layer")
            if word == "RUN" and "sudo" in line:
                wrong.append(f"{path}: sudo in a container")
    return wrong


def dockerignore(files):
    """The image is built from each folder of the build but the tests, and from the documents that are installed."""
    if ".dockerignore" not in files:
        return []
    sent = re.findall(r"^!(\S+)$", files[".dockerignore"], re.M)
    needed = re.findall(r"^ *subdir\('(\w+)'\)", files.get("meson.build", ""), re.M)
    table = re.search(r"^documents = \{(.*?)^\}", files.get(DOCUMENTS, ""), re.M | re.S)
    needed += re.findall(r"'\.\./([^']+)'", table[1]) if table else []
    return [f".dockerignore: meson.build needs {path}"
            for path in needed if path != "tests" and path not in sent and path.split("/")[0] not in sent]


ROUTE = re.compile(r'\{"([A-Z]+)",\s*"([^"]+)",\s*(?!page_|fleetd_page,)\w+,\s*(NULL|"([^"]*)"),\s*SCOPE_([A-Z]+)')
# The table of routes and the description of each program that serves HTTP.
CONTRACTS = {"api/routes.c": "api/openapi.yaml", "fleet/routes.c": "fleet/openapi.yaml"}


def documented(contract):
    """{(method, path): set of query parameters} of an OpenAPI document."""
    def resolve(value):
        while "$ref" in value:
            target = value["$ref"]
            value = contract
            for key in target.removeprefix("#/").split("/"):
                value = value[key]
        return value

    found = {}
    for path, item in contract.get("paths", {}).items():
        for method in set(item) & {"get", "put", "post", "delete", "patch"}:
            parameters = [resolve(p) for p in
                          item.get("parameters", []) + item[method].get("parameters", [])]
            found[method.upper(), path] = {p["name"] for p in parameters if p["in"] == "query"}
    return found


def routes_documented(files):
    """The route tables and openapi.yaml: the same calls, the same query parameters."""
    return [fault for table, contract in CONTRACTS.items() if table in files
            for fault in routes_of_one(files, table, contract)]


def routes_of_one(files, routes_c, openapi):
    import yaml  # what the build needs as well
    described = yaml.safe_load(files.get(openapi, "")) or {}
    contract = documented(described)
    contract_security = {(method, path): described["paths"][path][method.lower()].get("security")
                         for method, path in contract}
    table = {(method, path): (query, set(query.split(",")) - {""})
             for method, path, _, query, _ in ROUTE.findall(files[routes_c])}
    wrong = [f"{openapi}: {' '.join(call)} is not in {routes_c}"
             for call in sorted(set(contract) - set(table))]
    wrong += [f"{routes_c}: {' '.join(call)} is not in {openapi}"
              for call in sorted(set(table) - set(contract))]
    for call in sorted(set(table) & set(contract)):
        query, names = table[call]
        if query != "*" and names != contract[call]:
            wrong.append(f"{' '.join(call)}: query {sorted(names)} in {routes_c}, "
                         f"{sorted(contract[call])} in {openapi}")
    for method, path, _, _, scope in ROUTE.findall(files[routes_c]):
        needs = [] if scope == "NONE" else [{"token": [scope.lower()]}]
        said = contract_security.get((method, path), needs)
        if said != needs:
            wrong.append(f"{method} {path}: scope {scope} in {routes_c}, security {said} in {openapi}")
        if scope in ("NONE", "READ") and method != "GET":
            wrong.append(f"{method} {path}: what changes something needs the scope RUN or ADMIN")
    if not table:
        wrong.append(f"{routes_c}: no route was found")
    return wrong


DOCUMENTS = "docs/meson.build"


def installed_links(files):
    """What an installed document links to is installed, at the same place."""
    table = re.search(r"^documents = \{(.*?)^\}", files.get(DOCUMENTS, ""), re.M | re.S)
    if not table:
        return [f"{DOCUMENTS}: the table of documents was not found"] if DOCUMENTS in files else []
    installed, wrong = set(), []
    for folder, names in re.findall(r"'([\w./]+)': \[(.*?)\]", table[1], re.S):
        for name in re.findall(r"'([^']+)'", names):
            source = os.path.normpath(os.path.join("docs", name))
            installed.add(source)
            if os.path.dirname(source) != ("" if folder == "." else folder):
                wrong.append(f"{DOCUMENTS}: {source} is installed into {folder}")
    for path in sorted(p for p in installed if p.endswith(".md")):
        for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"^```.*?^```|`[^`]*`", "", files.get(path, ""), flags=re.M | re.S)):
            there = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if not target.startswith("http") and not any(p == there or p.startswith(there + "/") for p in installed):
                wrong.append(f"{path}: {there} is not installed")
    return wrong


VERSIONS = {  # where the version stands besides meson.build
    "tools/packaging/debian/changelog": r"^numaprobe \(([^)]+)\)",
    "tools/packaging/numaprobe.spec": r"^Version:\s*(\S+)",
}


def package_versions(files):
    """The packages have the version of meson.build."""
    if "meson.build" not in files:
        return []
    version = re.search(r"^  version: '([^']+)'", files["meson.build"], re.M)[1]
    wrong = []
    for path, pattern in VERSIONS.items():
        found = re.search(pattern, files.get(path, ""), re.M)
        if not found or found[1] != version:
            wrong.append(f"{path}: {found and found[1]} is not meson.build's {version}")
    return wrong


THREATS = "docs/THREATS.md"


def threats_have_tests(files):
    """Each row of the table of threats names tests that exist, as `file::function`."""
    wrong = []
    rows = [line for line in files.get(THREATS, "").splitlines() if re.match(r"\| \d+ \|", line)]
    for row in rows:
        tests = re.findall(r"`(tests/[\w./]+)::(\w+)`", row.split("|")[-2])
        number = row.split("|")[1].strip()
        if not tests:
            wrong.append(f"{THREATS}: row {number} names no test")
        for path, name in tests:
            if not re.search(rf"^(def|int|static \w+( \w+)*) \*?{name}\(", files.get(path, ""), re.M):
                wrong.append(f"{THREATS}: row {number}: there is no {path}::{name}")
    if THREATS in files and not rows:
        wrong.append(f"{THREATS}: no row was found")
    return wrong


def tests_are_run(files):
    """Each file of tests is named in a meson.build: by its name anywhere, or without "test_" in that of a folder around it."""
    builds = {p: t for p, t in files.items() if os.path.basename(p) == "meson.build"}
    wrong = []
    for path in files:
        name = re.fullmatch(r"tests/.*/(test_(\w+)\.(?:py|c))", path)
        around = [text for build, text in builds.items() if path.startswith(os.path.dirname(build) + "/")]
        if name and not any(f"'{name[2]}'" in text for text in around) and not any(f"{name[1]}'" in text for text in builds.values()):
            wrong.append(f"{path}: no meson.build names it, so it is never run")
    return wrong


def tests_are_patient(files):
    """What a test waits for comes late on a busy machine: its limits are a minute at least, or so short that they are to expire."""
    limit = re.compile(r"(?:(?<![-\w])timeout=|\.settimeout\(|\.wait\(|\.join\()(\d+)(?![\d.\w])")
    return [f"{path}: a limit of {found} s; PATIENCE of conftest.py ends what hangs"
            for path, text in files.items() if re.match(r"tests/(system|proof|fleet|slurm)/.*\.py$", path)
            for found in limit.findall(text) if 2 <= int(found) < 60]


SHARED_WEB = "web/meson.build"
# The files of a page -> the table that embeds them. What both pages have is in the first.
WEB_TABLES = {"web/": SHARED_WEB, "api/web/": "api/meson.build", "fleet/web/": "fleet/meson.build"}


def web_files_listed(files):
    """Each file of a web page is embedded, and its bare name, which is its address, is no other's of that page."""
    wrong, shared = [], []
    for folder, table in WEB_TABLES.items():
        own = os.path.dirname(table) + "/"
        listed = [own + name for name in re.findall(r"'([\w./]+\.(?:js|css|html))'", files.get(table, ""))]
        there = [p for p in files if p.startswith(folder) and not p.endswith(("/SOURCE", "/LICENSE", "/meson.build"))]
        shared = shared if table != SHARED_WEB else listed
        names = [os.path.basename(p) for p in listed + (shared if table != SHARED_WEB else [])]
        wrong += [f"{table}: does not list {p}" for p in sorted(set(there) - set(listed))] + \
            [f"{table}: there is no {p}" for p in sorted(set(listed) - set(there))] + \
            [f"{table}: two files have the name {n}" for n in sorted(set(names)) if names.count(n) > 1]
    return wrong


def vendored_unchanged(files):
    """A vendored folder has a licence, and a SOURCE with version, origin and the hash of each file as it was published."""
    wrong = [f"{p}: its folder is not in VENDORED" for p in files if "/vendor/" in p and not p.startswith(VENDORED)]
    for folder in sorted({v for v in VENDORED for p in files if p.startswith(v)}):
        source = files.get(folder + "SOURCE", "")
        wrong += [f"{folder}SOURCE: no line {word}" for word in ("package: ", "version: ", "licence: ", "tarball: sha512-")
                  if "\n" + word not in source]
        known = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", source, re.M)}
        there = {p.removeprefix(folder): hashlib.sha256(t.encode()).hexdigest() for p, t in files.items()
                 if p.startswith(folder) and p != folder + "SOURCE"}
        wrong += [f"{folder}{name}: is not what SOURCE has" for name in sorted(set(known) | set(there))
                  if known.get(name) != there.get(name)]
        if "LICENSE" not in there:
            wrong.append(f"{folder}: no LICENSE")
    return wrong


STEPS = "schema/steps.sha256"


def schema_steps_unchanged(files):
    """A step that a database somewhere has taken stays as it was: what comes later is a step of its own."""
    known = {path: digest for digest, path in re.findall(r"^([0-9a-f]{64})  (\S+)$", files.get(STEPS, ""), re.M)}
    there = {p: hashlib.sha256(t.encode()).hexdigest() for p, t in files.items() if re.match(r"schema/.*\d{4}-[^/]*\.sql$", p)}
    return [f"{path}: is not the step that {STEPS} has: add a new step" for path in sorted(set(known) & set(there))
            if known[path] != there[path]] + \
        [f"{path}: is in one of {STEPS} and the tree alone" for path in sorted(set(known) ^ set(there))]


FUNCTION = re.compile(r"^(static )?(?:inline )?[A-Za-z_][\w *]*?\**\b(\w+)\([^;{}=]*\)\n\{", re.M)


def static_names(files):
    """A name says which function is meant: in gdb, perf, grep and a stack in an issue."""
    found = {}
    for path, text in in_rooms(files).items():
        for match in FUNCTION.finditer(bare(text)):
            found.setdefault(match[2], {})[path] = match[1] is not None
    return [f"{path}: static {name} has the name of a function in {sorted(set(paths) - {path})[0]}"
            for name, paths in found.items() if len(paths) > 1 and name != "main"
            for path, is_static in paths.items() if is_static]


def circles(arrows):
    """Strongly connected parts of {name: set of names} with more than one name (Tarjan)."""
    order, low, stack, found = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(arrows.get(name, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            part = {stack.pop()}
            while name not in part:
                part.add(stack.pop())
            if len(part) > 1:
                found.append(part)

    for name in sorted(arrows):
        if name not in order:
            visit(name)
    return found


def module(path):
    return path.rsplit(".", 1)[0]


def module_circles(files):
    """No module includes one that, by way of others, includes it."""
    arrows = {}
    for path, text in in_rooms(files).items():
        arrows.setdefault(module(path), set()).update(
            module(name) for _, kind, name in includes(text) if kind == '"' and module(name) != module(path))
    return [f"modules include each other: {', '.join(sorted(part))}" for part in circles(arrows)]


# Folders whose files are entries of a table: its header stands in the place of parts.h.
TABLE_HEADERS = {"analysis/report": "section.h", "api/resources": "resources.h", "bench/benchmarks": "table.h",
                 "client": "commands.h", "fleet/resources": "resources.h", "client/fleet": "fleet.h", "http/messages": "http.h"}
# A .c without a header of its name, and why.
NO_HEADER = {
    "main.c": "the start of a program",
    "api/worker_main.c": "the start of a process",
    "analysis/metrics/rules.c": "a table of analysis/metrics/metrics.h",
    "bench/ranks/comm_mpi.c": "a module that numa_bench loads; bench/ranks/comm.h has its table's type",
    "bench/ranks/comm_processes.c": "a table of bench/ranks/comm.h",
    "model/axis.c": "part of model/matrix.h",
    "model/benchmarks.c": "the table of model/spec.h",
    "model/nodeset_fold.c": "part of model/nodeset.h",
}


def own_header(files):
    """What a .c offers stands in the header of its name, or in the one that its folder shares."""
    wrong = []
    for path in in_rooms(files):
        folder, name = os.path.split(path)
        if path.endswith(".c") and name not in NO_HEADER and path not in NO_HEADER and \
                not {module(path) + ".h", f"{folder}/parts.h", f"{folder}/{TABLE_HEADERS.get(folder)}"} & set(files):
            wrong.append(f"{path}: there is no {module(path)}.h, nor a parts.h in its folder")
    return wrong


def opening(files):
    """A file opens with what it is for, why it is so, or the order of events."""
    return [f"{path}: no comment behind the licence line" for path, text in in_rooms(files).items()
            if not re.match(r"//[^\n]*\n// \S", text)]


DECLARED = re.compile(r"^(?!static|typedef|#|return|extern)[A-Za-z_][\w ]*[ *]+(\w+)\([^;{}]*?\)[^;{}()]*(?:__attribute__\(\(.*?\)\))?;", re.M)


def declared_defined(files):
    """What a header declares, some .c defines."""
    defined = {match[2] for text in files.values() for match in FUNCTION.finditer(bare(text))}
    return [f"{path}: {name} is declared, and defined nowhere"
            for path, text in in_rooms(files).items() if path.endswith(".h")
            for name in DECLARED.findall(bare(text)) if name not in defined]


COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//([^\n]*)')
CONSTANT = re.compile(r"^#define ([A-Z]\w+)|^ +([A-Z][A-Z0-9_]+) = ", re.M)


def comments_name_files(files):
    """A comment that names a file names one of ours, or a header of a library that is included."""
    sources = {p: t for p, t in files.items() if is_c(p)}
    there = {"/" + p for p in files} | {"/" + name for t in sources.values() for name in re.findall(r"#include <(.+?)>", t)}
    return [f"{path}: a comment names {name}, which is not there"
            for path, text in sources.items() for comment in COMMENT.findall(text)
            for name in re.findall(r"(?<![<\w./-])[\w./-]*\w\.[ch]\b", comment) if not any(t.endswith("/" + name) for t in there)]


def constants_used(files):
    """A constant that is defined is used, if only by a test. NAME_NONE may stand for 0."""
    words = collections.Counter(word for p, t in files.items() if is_c(p) for word in re.findall(r"\w+", bare(t)))
    return [f"{path}: nothing uses {name}" for path, text in in_rooms(files).items()
            for name in map("".join, CONSTANT.findall(bare(text))) if words[name] < 2 and not name.endswith("_NONE")]


RULES = [include_directions, inner_directions, module_circles, include_roots, own_header, opening, declared_defined, static_names,
         comments_name_files, constants_used, one_door, denied_calls, log_values, function_lines, licence_headers, white_space, texts_end, forbidden_words, dockerfile, dockerignore,
         routes_documented, installed_links, package_versions, threats_have_tests, tests_are_run, tests_are_patient,
         web_files_listed, vendored_unchanged, schema_steps_unchanged]


SKIPPED_FOLDERS = {".git", "build", ".quickstart", ".check", "__pycache__", ".pytest_cache",
                   ".hypothesis"}


def project_paths(root):
    """Files of the project: git's, with new ones; without git every file that is no product."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-coz", "--exclude-standard"],
                                capture_output=True, check=True).stdout
        paths = [p.decode() for p in listed.split(b"\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
            paths += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(p for p in set(paths) if os.path.isfile(os.path.join(root, p)))


def project_files(root):
    files = {}
    for path in project_paths(root):
        with open(os.path.join(root, path), "rb") as f:
            data = f.read()
        if b"\0" not in data:
            files[path] = data.decode("utf-8", "replace")
    return files
