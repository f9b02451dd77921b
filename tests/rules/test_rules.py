#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TAP: every house rule catches its bad example, lets the good one pass, and holds for the tree.

usage: test_rules.py SOURCE_ROOT
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

import contract
import prose
import rules
from tap import check, end, skip

CLANG_FORMAT = 14
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LONG = "static int f(void)\n{\n" + "    x();\n" * 79 + "}\n"
MIDDLING = "static int f(void)\n{\n" + "    x();\n" * 19 + "}\n"
DOCKERFILE = """# SPDX-License-Identifier: Apache-2.0
FROM debian:12 AS build
RUN apt-get install --no-install-recommends gcc && rm -rf /var/lib/apt/lists/*
FROM debian:12
LABEL a=b
VOLUME /v
EXPOSE 1
USER numaprobe
HEALTHCHECK CMD ["true"]
ENTRYPOINT ["true"]
"""

STEP = "CREATE TABLE a;\n"
STEPS = hashlib.sha256(STEP.encode()).hexdigest() + "  schema/sql/0001-first.sql\n"

ROUTES = """const struct route routes[] = {
    {"GET", "/a", a_get, "wait", SCOPE_READ},
    {"POST", "/a", a_post, NULL,
     SCOPE_RUN},
    {0},
};
"""
POST = """    post: {tags: [x], summary: A, responses: {"400": {}}, security: [{token: [run]}]}
"""
CONTRACT = """
tags: [{name: x}]
paths:
  /a:
    get:
      tags: [x]
      summary: G
      parameters: [{$ref: "#/components/parameters/wait"}, {name: other, description: O, in: header}]
      responses: {"404": {}}
      security: [{token: [read]}]
""" + POST + """components: {parameters: {wait: {name: wait, in: query}}, schemas: {S: {properties: {b: {description: B}}}}}
"""


def described(contract):
    return {"api/openapi.yaml": contract}


VERSIONS = {
    "meson.build": SPDX + "project('x', 'c',\n  version: '1.2.3',\n",
    "tools/packaging/debian/changelog": "numaprobe (1.2.3) unstable; urgency=medium\n",
    "tools/packaging/numaprobe.spec": SPDX + "Version:        1.2.3\n",
}


VENDOR = "web/vendor/uPlot/"
VENDORED = {
    VENDOR + "LICENSE": "MIT", VENDOR + "a.js": "let a; \n",
    VENDOR + "SOURCE": "A.\n\npackage: a\nversion: 1\nlicence: MIT\ntarball: sha512-x\n" + "".join(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in (("LICENSE", b"MIT"), ("a.js", b"let a; \n"))),
}


def routes(table, contract):
    return {"api/routes.c": SPDX + "// Rows.\n" + table, "api/openapi.yaml": contract}


# rule -> [(what is bad, files)]; and one good neighbour that must pass
BAD = {
    rules.include_directions: [
        ("model includes core", {"model/a.c": '#include "core/store/store.h"\n'}),
        ("http includes a noun that it need not know", {"http/server/a.c": '#include "model/run.h"\n'}),
        ("http includes another room of core", {"http/server/a.c": '#include "core/store/db.h"\n'}),
        ("a room within a room includes what only its room may", {"fleet/store/a.c": '#include "http/server/server.h"\n'}),
        ("a fleet's store includes the node's", {"fleet/store/a.c": '#include "core/store/store.h"\n'}),
        ("daemon includes model", {"daemon/a.c": '#include "model/run.h"\n'}),
        ("base includes a room", {"base/a.h": '# include "model/run.h"\n'}),
    ],
    rules.inner_directions: [
        ("a room looks up", {"core/os/a.c": '#include "core/store/store.h"\n'}),
        ("a room includes what lies above all", {"bench/ranks/a.c": '#include "bench/main.h"\n'}),
        ("a room that is not in the list", {"core/cellar/a.c": ""}),
    ],
    rules.module_circles: [
        ("two that include each other", {"core/a.h": '#include "core/b.h"\n', "core/b.c": '#include "core/a.h"\n'}),
        ("a .c of the parts that its own header includes", {"core/a.c": '#include "core/parts.h"\n', "core/parts.h": '#include "core/a.h"\n'}),
        ("a circle of three", {"core/a.c": '#include "core/b.h"\n', "core/b.h": '#include "model/c.h"\n',
                               "model/c.c": '#include "core/a.h"\n'}),
    ],
    rules.own_header: [
        ("a .c without a header", {"core/run/a.c": "", "core/run/b.h": ""}),
        ("the parts of another folder", {"core/run/a.c": "", "core/parts.h": ""}),
    ],
    rules.installed_links: [
        ("no table", {"docs/meson.build": ""}),
        ("a link to what is not installed", {"docs/meson.build": "documents = {\n  'docs': ['A.md'],\n}\n", "docs/A.md": "[b](B.md)\n"}),
        ("another place", {"docs/meson.build": "documents = {\n  '.': ['A.md'],\n}\n", "docs/A.md": "text\n"}),
    ],
    rules.opening: [("only a licence", {"core/a.c": SPDX + '#include "core/a.h"\n'})],
    rules.declared_defined: [
        ("a function that is nowhere", {"core/a.h": "int f(int x);\n", "core/a.c": "int g(int x)\n{\n}\n"}),
        ("one that is over several lines", {"core/a.h": "const struct x *f(int x,\n    int y);\n"}),
    ],
    rules.static_names: [
        ("two statics of one name", {"core/a.c": "static void tell(int x)\n{\n}\n",
                                     "api/b.c": "static int tell(void)\n{\n}\n"}),
        ("a static beside a function of all", {"core/a.c": "static void tell(int x)\n{\n}\n",
                                               "core/b.c": "void tell(int x)\n{\n}\n"}),
    ],
    rules.comments_name_files: [
        ("a file that was renamed", {"core/a.c": "// As core/b.c does.\n"}),
        ("at the end of a line", {"core/a.c": "int n; // of b.h\n", "core/bb.h": "// c\n"}),
    ],
    rules.constants_used: [
        ("a macro that is left over", {"core/a.c": "#define MOST 5\n// MOST\n"}),
        ("a constant of an enumeration", {"core/a.h": "enum {\n    MOST = 5,\n};\n", "core/a.c": 'char a[] = "MOST";\n'}),
    ],
    rules.texts_end: [("an array without room for the end", {"core/a.c": 'char a[5] = "a\\nbcd";\n'})],
    rules.include_roots: [("a sibling by its bare name", {"core/a.c": '#include "b.h"\n',
                                                         "core/b.h": ""})],
    rules.one_door: [
        ("a library in the wrong room", {"api/a.c": "#include <sqlite3.h>\n"}),
        ("two doors in a room", {"core/a.c": "#include <sqlite3.h>\n",
                                 "core/b.c": "#include <sqlite3.h>\n"}),
        ("two headers of a library", {"bench/a.c": "#include <numa.h>\n",
                                      "bench/b.c": "#include <numaif.h>\n"}),
    ],
    rules.denied_calls: [
        ("a shell", {"client/a.c": 'int x = system("ls");\n'}),
        ("a sleep in the daemon", {"core/a.c": "    usleep (3);\n"}),
        ("a clock in a pure room", {"analysis/a.c": "t = time(NULL);\n"}),
    ],
    rules.log_values: [
        ("a value that may end its quotes", {"core/a.c": 'log_event(LOG, "x", "n=%s why=\\"%s\\"", n, why);\n'}),
        ("one of two", {"fleet/a.c": 'log_event(LOG, "x",\n  "a=\\"in %s\\" b=\\"%s\\"", log_quote(a).text, b);\n'}),
    ],
    rules.function_lines: [("82 lines", {"core/a.c": LONG}),
                           ("a median of 22", {"core/a.c": MIDDLING})],
    rules.licence_headers: [("no licence", {"core/a.c": "int x;\n"}),
                            ("a script without", {"tool": "#!/bin/sh\ntrue\n"}),
                            ("a part of the page without", {"api/web/a.js": "let a;\n"})],
    rules.white_space: [("a blank at the end", {"a.md": "x \n"}),
                        ("no newline at the end", {"a.md": "x"}),
                        ("a tab in C", {"a.c": "\tint x;\n"})],
    rules.forbidden_words: [(why, {"a.md": "see " + word + "here\n"})
                            for word, why in rules.FORBIDDEN.items()],
    rules.dockerfile: [
        ("root", {"Dockerfile": DOCKERFILE.replace("USER numaprobe", "USER root")}),
        ("no health check", {"Dockerfile": DOCKERFILE.replace("HEALTHCHECK", "#")}),
        ("no release", {"Dockerfile": DOCKERFILE.replace("debian:12", "debian")}),
        ("lists left", {"Dockerfile": DOCKERFILE.replace("rm -rf", "ls")}),
        ("a shell in between", {"Dockerfile": DOCKERFILE.replace('["true"]', "true")}),
    ],
    rules.dockerignore: [
        ("a folder that the build needs", {"meson.build": SPDX + "subdir('a')\n", ".dockerignore": "*\n!b\n"}),
        ("a document that is installed", {
            "docs/meson.build": SPDX + "documents = {\n  '.': ['../A.md'],\n}\n", ".dockerignore": "*\n!docs\n"}),
    ],
    rules.routes_documented: [
        ("a call that nobody documented", routes(ROUTES, CONTRACT.replace(POST, ""))),
        ("a call that nobody serves", routes(ROUTES.replace("POST", "PUT"), CONTRACT)),
        ("another query parameter", routes(ROUTES.replace("wait", "wart"), CONTRACT)),
        ("another scope", routes(ROUTES.replace("SCOPE_RUN", "SCOPE_ADMIN"), CONTRACT)),
        ("a change that anybody may make", routes(ROUTES.replace("SCOPE_RUN", "SCOPE_NONE"),
                                                  CONTRACT.replace("[{token: [run]}]", "[]"))),
        ("no table", routes("", "")),
        ("the collector's description", {p.replace("api/", "fleet/"): t for p, t in routes(ROUTES, CONTRACT.replace(POST, "")).items()}),
    ],
    contract.contract_described: [
        ("a property without a description", described(CONTRACT.replace("description: B", "type: string"))),
        ("a parameter without one", described(CONTRACT.replace("description: O, ", ""))),
        ("an operation without a tag", described(CONTRACT.replace("tags: [x], ", "", 1))),
        ("one with a tag that is not declared", described(CONTRACT.replace("tags: [x]", "tags: [y]", 1))),
        ("one without a summary", described(CONTRACT.replace("summary: A, ", ""))),
        ("one that refuses nothing", described(CONTRACT.replace('"400"', '"200"'))),
        ("the collector's description", {"fleet/openapi.yaml": CONTRACT.replace("description: B", "type: string")}),
    ],
    rules.package_versions: [
        ("a package of another version", {**VERSIONS, "tools/packaging/numaprobe.spec": "Version: 1.2.2\n"}),
        ("a package without one", {**VERSIONS, "tools/packaging/debian/changelog": ""}),
    ],
    rules.tests_are_run: [
        ("a test that nothing runs", {"tests/system/test_a.py": "", "tests/system/meson.build": "'b'"}),
        ("one of another folder's list", {"tests/unit/fleet/test_a.c": "", "tests/system/meson.build": "'a'"}),
    ],
    rules.tests_are_patient: [
        ("a limit of seconds", {"tests/system/test_a.py": "p.communicate(timeout=20)"}),
        ("one of a socket", {"tests/proof/test_a.py": "s.settimeout(5)"}),
        ("one without its name", {"tests/fleet/test_a.py": "p.wait(30)"}),
    ],
    rules.web_files_listed: [
        ("a file that is not embedded", {"api/web/a.js": SPDX, "api/meson.build": ""}),
        ("one that is not there", {"api/meson.build": "input: ['web/a.js']"}),
        ("one of both pages that is not embedded", {"web/a.js": SPDX}),
        ("two of one name", {"fleet/web/a.js": SPDX, "fleet/meson.build": "'web/a.js'", VENDOR + "a.js": "",
                             "web/meson.build": "'vendor/uPlot/a.js'"}),
    ],
    rules.vendored_unchanged: [
        ("a change", {**VENDORED, VENDOR + "a.js": "let b;\n"}),
        ("a file that nobody published", {**VENDORED, VENDOR + "b.js": "let b;\n"}),
        ("a file that is missing", {p: t for p, t in VENDORED.items() if not p.endswith("a.js")}),
        ("no licence", {p: t for p, t in VENDORED.items() if not p.endswith("LICENSE")}),
        ("no origin", {p: t for p, t in VENDORED.items() if not p.endswith("SOURCE")}),
        ("no hash of what was published", {**VENDORED, VENDOR + "SOURCE": VENDORED[VENDOR + "SOURCE"].replace("tarball", "ball")}),
        ("a folder that is not in the list", {"client/vendor/a.js": "let a;\n"}),
    ],
    rules.schema_steps_unchanged: [
        ("a step that was edited", {"schema/sql/0001-first.sql": "CREATE TABLE b;\n", "schema/steps.sha256": STEPS}),
        ("a step that is not listed", {"schema/sql/0001-first.sql": STEP, "schema/sql/0002-b.sql": STEP, "schema/steps.sha256": STEPS}),
        ("a step that is gone", {"schema/steps.sha256": STEPS}),
    ],
    rules.threats_have_tests: [
        ("a threat without a test", {"docs/THREATS.md": "| 1 | L: x | y | by hand |\n"}),
        ("a test that is not there", {"docs/THREATS.md": "| 1 | L: x | y | `tests/a.py::test_b` |\n",
                                      "tests/a.py": "def test_a():\n"}),
        ("an empty table", {"docs/THREATS.md": "nothing\n"}),
    ],
}
BAD |= {
    prose.sentence_length: [
        ("a long sentence", {"README.md": "One " + "word " * 35 + "more.\n"}),
        ("one over several lines", {"README.md": "- One\n" + "  word\n" * 35}),
        ("one in a table", {"README.md": "| a | " + "word " * 36 + "|\n"}),
    ],
    prose.cell_is_defined: [
        ("a cell without a link", {"docs/a.md": "The value of a cell\n"}),
        ("a link that is late", {"docs/a.md": "Cells.\n\n[cell](../README.md#glossary)\n"}),
    ],
    prose.line_width: [("101 columns", {"README.md": "x" * 101 + "\n"})],
    prose.links: [
        ("no such file", {"docs/a.md": "[a](b.md)\n", "b.md": "x\n"}),
        ("no such heading", {"README.md": "[a](docs/a.md#b)\n", "docs/a.md": "# C\n"}),
    ],
    prose.named_things: [
        ("no such file", {"docs/HACKING.md": "`core/a.c`\n", "core/b.c": ""}),
        ("no such folder", {"docs/HACKING.md": "`core/os/`\n", "core/b.c": ""}),
        ("no such function", {"docs/ARCHITECTURE.md": "`a_make()`\n", "core/a.c": "a_maker();\n"}),
    ],
    prose.comment_words: [
        ("a word in a comment", {"base/a.c": "int a; // what it was told\n"}),
        ("a phrase over a function", {"core/a.h": "// Nobody knows.\n"}),
    ],
    prose.plain_words: [
        ("a word in the changelog", {"CHANGELOG.md": "- It goes on.\n"}),
        ("a word in a document", {"README.md": "What `x` was told\n"}),
        ("a phrase", {"README.md": "One rank a core\n"}),
        ("a capital", {"docs/man/a.1": "Somebody\n"}),
        ("a string of C", {"zone/a.c": 'x("the run goes on");\n'}),
        ("the description of the API", {"zone/openapi.yaml": "summary: What was asked for\n"}),
        ("the description of a package", {"tools/packaging/debian/control": " it runs one rank a core\n"}),
    ],
}
OPENED = SPDX + "// It adds.\n"
GOOD = {
    "docs/HACKING.md": "`core/a.c`, `core/`, `core/*.c`, `base/X.c`, `route_table`, `SPDX_x y`\n",
    "model/route.h": OPENED + "int route_table;\n",
    "base/a.h": OPENED + "int g(int x,\n      int y);\n",
    "base/json.c": OPENED + "#include <cjson/cJSON.h>\n",
    "core/a.h": SPDX + '// It adds.\n#include "base/a.h"\n',
    "base/a.c": OPENED + "int g(int x,\n      int y)\n{\n}\n",
    "base/json.h": OPENED,
    "bench/a.h": OPENED,
    "core/a.c": SPDX + '// By hand.\n#include <sqlite3.h>\n#include "base/a.h"\n\n'
                       '// time() and system() in a comment\nint f(void)\n{\n'
                       '    return x->system("sleep(1)");\n}\n',
    "bench/a.c": OPENED + "#include <numa.h>\n#include <numaif.h>\n" + 'char a[3] = "ab";\n',
    "Dockerfile": DOCKERFILE,
    "README.md": "# A B\n\n[x](Dockerfile), [y](#a-b): fine, a file descriptor. `told` is a name.\n\n| a | b |\n|---|---|\n| " + "word " * 30 + "| " + "word " * 29 +
                 "word |\n\n```\n" + "command " * 40 + "it\n```\n",
    "zone/a.c": SPDX + '// told in a comment\nx("told", "a word");\n',
    "docs/THREATS.md": "| 1 | L: x | y | `tests/a.py::test_a` |\n",
    "tests/a.py": SPDX.replace("//", "#") + "def test_a():\n    pass\n",
    **routes(ROUTES, CONTRACT), "api/routes.h": OPENED,
    **VERSIONS, **VENDORED, "api/web/a.html": f"<!doctype html>\n<!-- {SPDX[3:-1]} -->\n",
    "api/meson.build": SPDX.replace("//", "#") + "files('web/a.html')\n",
    "web/meson.build": SPDX.replace("//", "#") + "files('vendor/uPlot/a.js')\n",
}


def check_rules(root):
    files = rules.project_files(root)
    check(len(files) > 40 and "meson.build" in files, f"the tree is found ({len(files)} files)")
    for rule in rules.RULES + prose.RULES + contract.RULES:
        for what, bad in BAD[rule]:
            check(rule(bad), f"{rule.__name__} catches: {what}")
        wrong = rule(GOOD)
        check(not wrong, f"{rule.__name__} lets good files pass", wrong)
        wrong = rule(files)
        check(not wrong, f"{rule.__name__} holds for the tree", wrong)


def clang_format():
    """Other versions lay the same code out in another way."""
    for name in (f"clang-format-{CLANG_FORMAT}", "clang-format"):
        tool = shutil.which(name)
        if tool and f"version {CLANG_FORMAT}." in subprocess.run([tool, "--version"], capture_output=True, text=True).stdout:
            return tool
    return None


def check_format(root):
    tool = clang_format()
    if not tool:
        return skip("the layout of the code", f"no clang-format {CLANG_FORMAT}: Debian 13 has none (pip install "
                    f"clang-format=={CLANG_FORMAT}.0.6)")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(root, ".clang-format"), folder)
        bad = os.path.join(folder, "bad.c")
        with open(bad, "w", encoding="ascii") as f:
            f.write("int  x ;\n")
        done = subprocess.run([tool, "--dry-run", "-Werror", bad], capture_output=True)
        check(done.returncode != 0, "clang-format catches a bad layout")
    paths = [p for p in rules.project_paths(root) if rules.is_c(p)]
    done = subprocess.run([tool, "--dry-run", "-Werror"] + paths, cwd=root, capture_output=True,
                          text=True)
    wrong = [l for l in done.stderr.splitlines() if "error:" in l]
    check(done.returncode == 0, "the code is laid out by .clang-format", wrong[:20])


def check_shell(root):
    tool = shutil.which("shellcheck")
    if not tool:
        return skip("the shell scripts", "shellcheck is not installed")
    scripts = [p for p, t in rules.project_files(root).items()
               if t.startswith(("#!/bin/sh", "#!/usr/bin/env bash", "#!/bin/bash"))
               or p.endswith(".sh")]
    check({"quickstart", "check"} <= set(scripts), "the scripts are found")
    done = subprocess.run([tool, "-s", "sh", "-"], input="[[ $x == 1 ]]\n", capture_output=True,
                          text=True)
    check(done.returncode != 0, "shellcheck catches a bashism")
    done = subprocess.run([tool, "-x", "-S", "style"] + scripts, cwd=root, capture_output=True,
                          text=True)
    check(done.returncode == 0, "shellcheck is content with every script",
          done.stdout.splitlines()[:40])


def check_spelling(root):
    tool = shutil.which("codespell")
    if not tool:
        return skip("spelling", "codespell is not installed")
    done = subprocess.run([tool, "-"], input="A rec" + "ieved byte\n", capture_output=True, text=True)
    check("received" in done.stdout, "codespell catches a mistake")
    paths = [p for p in rules.project_files(root)
             if rules.is_ours(p) and not p.startswith(("tests/fuzz/corpus/", "tests/data/")) and p != ".codespellrc"]
    done = subprocess.run([tool] + paths, cwd=root, capture_output=True, text=True)  # reads .codespellrc
    check(done.returncode == 0, "codespell finds no mistake", done.stdout.splitlines()[:40])


def check_reading(root):
    """How the documents read, and what the rules of prose could hold by now."""
    files = rules.project_files(root)
    documents = prose.documents(files)
    for path, text in sorted(documents.items()):
        n, mean, most = prose.reading({path: text})
        print(f"# {path}: {n} sentences, mean {mean:.1f} words, longest {most}")
    for name in prose.clean_by_now(files):
        print(f"# {name} has plain words only: take it off WORDS_NOT_YET in prose.py")
    n, mean, most = prose.reading(documents)
    check(n > 0, f"documents: {n} sentences, mean {mean:.1f} words, longest {most}")


def main(root):
    check_rules(root)
    check_reading(root)
    check_spelling(root)
    check_format(root)
    check_shell(root)
    return end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
