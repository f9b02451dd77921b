# SPDX-License-Identifier: Apache-2.0
"""Rules about what users read: documents, help, errors, the API's description and the dashboard.

Each rule takes {path: text} and returns what is wrong, a line each, as those of rules.py do.
"""
import fnmatch
import os
import re

import rules

MOST_WORDS, MOST_COLUMNS = 35, 100

# What a reader stumbles over -> the term of the field. Matched as whole words, in any case.
INSTEAD = {
    r"mend(s|ed|ing)?": "fix, repair",
    r"set(s|ting)? aside": "quarantined",
    r"told": "reported, notified",
    r"ask(s|ed)? for": "requested, submitted",
    r"(?<!numaprobe or )(?<!else )(some|no|any)body": "a user, a process, a client",
    r"who(m)?ever": "a user, a process, a client",
    r"who (waits|may|asks|gives|looks)": "a client that ...",
    r"(ranks?|process(es)?|threads?|MiB|KiB|L2|L3|line|one|rows?) an? (core|node|rank|cpu|l3|line)": "per core, per node",
    r"without a meeting": "without a barrier",
    r"public ancestor": "numa_bench 1.x",
    r"control groups?": "cgroup",
    r"moments? of the run": "repetitions spread over the run",
    r"(goes|go|going|went) on": "is running, continues",
    r"(is|are|was) over": "has finished",
    r"(?<!if )not free": "busy",
    r"in the way": "blocks the run",
    r"surely": "significantly (95 %)",
    r"company": "contention, concurrent load",
    r"modes? parts?|parting modes?": "concurrent and serial diverge",
    r"(what a core )?tells? another": "cache-line transfer, core-to-core latency",
    r"(?<!file )(?<!files )descriptors?": "file descriptor",
    r"tight": "converged",
    r"(the|an|no|this|each|every|large) answers?": "response, result",
    r"the middle": "median",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({p})" for p in
                                         (re.sub(r"\((?!\?)", "(?:", p) for p in INSTEAD)) + r")\b", re.I)

# Rooms that are not clean yet. Take one off when it is; add none.
WORDS_NOT_YET = set()
# Its strings are those of earlier versions.
OF_EARLIER = {"formats/earlier.c"}


def documents(files):
    """The prose: CHANGELOG.md is a list of its own kind."""
    return {p: t for p, t in files.items()
            if re.fullmatch(r"(docs/\w+|(tests/\w+/)?README|CONTRIBUTING|SECURITY)\.md", p)}


def without_code(text):
    """Markdown without fenced or indented blocks, with the same lines."""
    lines, fenced, block = [], False, True
    for line in text.splitlines():
        if re.match(r"\s*```", line):
            fenced = not fenced
            line = ""
        # four blanks after an empty line are a block of code, elsewhere a list goes on
        indented = line.startswith("    ") and block and not re.match(r"\s*([-*]|\d+\.) ", line)
        block = not line.strip() or indented
        lines.append("" if fenced or indented else line)
    return lines


def plain(text):
    """A piece of Markdown as words: code is one word, a link is its text."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<https?://[^>]*>", "link", text).replace("*", "")


def pieces(text):
    """[(line number, text)]: paragraphs, list items and cells of tables; no headings, no code."""
    found, paragraph, first = [], [], 0
    for number, line in enumerate(without_code(text) + [""], 1):
        bare = line.strip()
        begins = re.match(r"([-*]|\d+\.) ", bare)
        if (not bare or begins or bare.startswith(("#", "|", ">"))) and paragraph:
            found.append((first, " ".join(paragraph)))
            paragraph = []
        if bare.startswith("|"):
            cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "Code", bare.strip("|")))
            found += [(number, c) for c in cells if re.search(r"\w", c)]
        elif bare and not bare.startswith("#"):
            if not paragraph:
                first = number
            paragraph.append(bare[begins.end():] if begins else bare.lstrip("> "))
    return found


def sentences(text):
    """[(line number of its paragraph, sentence)]"""
    found = []
    for number, piece in pieces(text):
        parts = re.split(r"(?<=[.!?])[)\"]?\s+(?=[A-Z`\"(])", plain(piece))
        found += [(number, s) for s in parts if re.search(r"[A-Za-z]", s)]
    return found


def words(sentence):
    return [w for w in sentence.split() if re.search(r"\w", w)]


def reading(files):
    """(sentences, mean words, most words) of some documents; cells of tables are phrases and do not count."""
    lengths = [len(words(s)) for t in files.values() for _, s in
               sentences("\n".join(l for l in t.splitlines() if not l.lstrip().startswith("|")))]
    return (len(lengths), sum(lengths) / len(lengths), max(lengths)) if lengths else (0, 0.0, 0)


def sentence_length(files):
    return [f"{path}:{number}: a sentence of {len(words(s))} words, at most {MOST_WORDS}: {s[:60]}..."
            for path, text in documents(files).items()
            for number, s in sentences(text) if len(words(s)) > MOST_WORDS]


# A term of ours that means something else to others: its first use in a document says what it is.
CELL = re.compile(r"\bcells?\b", re.I)


def cell_is_defined(files):
    wrong = []
    for path, text in documents(files).items():
        lines = "\n".join(re.sub(r"`[^`]*`", "Code", line) for line in without_code(text))
        first = CELL.search(lines) if path.startswith("docs/") else None
        if first and not lines[first.end():].startswith("](../README.md#glossary)"):
            wrong.append(f"{path}:{lines.count(chr(10), 0, first.start()) + 1}: the first \"cell\" has no link to the glossary")
    return wrong


def line_width(files):
    """Rows of tables and lines of code cannot be wrapped."""
    return [f"{path}:{number}: {len(line)} columns, at most {MOST_COLUMNS}"
            for path, text in documents(files).items()
            for number, line in enumerate(without_code(text), 1)
            if len(line) > MOST_COLUMNS and not line.lstrip().startswith("|")]


def links(files):
    """Links between documents: the file is there, and so is the heading."""
    wrong = []
    for path, text in documents(files).items():
        for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(without_code(text))):
            if re.match(r"https?://", target):
                continue
            name, _, heading = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if there not in files and not any(p.startswith(there + "/") for p in files):
                wrong.append(f"{path}: {target}: there is no {there}")
            elif heading and heading not in headings(files[there]):
                wrong.append(f"{path}: {target}: {there} has no such heading")
    return wrong


def headings(text):
    """The anchors of a document, as GitHub makes them."""
    titles = [l.lstrip("#").strip().lower() for l in without_code(text) if l.startswith("#")]
    return {re.sub(r"[^\w -]", "", t).replace(" ", "-") for t in titles}


DESCRIBING = ("docs/ARCHITECTURE.md", "docs/HACKING.md")
SOURCE = (".c", ".h", ".py", ".yaml", "meson.build")


def named_things(files):
    """Files, folders and functions that the documents for developers name are there. NAME and X stand for any."""
    code = {word for p, t in files.items() if p.endswith(SOURCE) for word in re.findall(r"\w+", t)}
    wrong = []
    for path in DESCRIBING:
        for name in re.findall(r"(?<!`)`([^`\s]+)`(?!`)", files.get(path, "")):
            if re.search(r"(?<![A-Z])X(?![A-Z])|NAME|^build/|^\.check/|[<>…]", name):
                continue
            if re.fullmatch(r"[\w.*]+(/[\w.*-]+)*(/|\.(c|h|py|sh|md|yaml|json|sql|build|yml))", name) and \
                    not any(p == name or fnmatch.fnmatch(p, name) or p.startswith(name) or
                            "/" not in name and p.endswith("/" + name) for p in files):
                wrong.append(f"{path}: there is no {name}")
            elif re.fullmatch(r"[A-Za-z]\w*_\w+(\(\))?", name) and name.removesuffix("()") not in code and \
                    not any(os.path.basename(p).partition(".")[0] == name for p in files):
                wrong.append(f"{path}: nothing has the name {name}")
    return wrong


STRING = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\\n])*\'|"((?:\\.|[^"\\\n])*)"', re.S)


def strings(text):
    """[(line number, literal)] of C: those with a blank in them, which are for people."""
    return [(text.count("\n", 0, m.start()) + 1, m[1]) for m in STRING.finditer(text)
            if m[1] and " " in m[1].strip()]


# Whole files whose words are for users.
TEXTS = {"quickstart", "check", "Dockerfile", "tools/packages.sh", "tools/packaging/debian/control", "tools/packaging/numaprobe.spec"}


def readable(files):
    """{path: [(line number, text)]}: everything that a user reads."""
    found = {}
    for path, text in files.items():
        if path in documents(files) or path == "CHANGELOG.md":
            found[path] = [(n, plain(l)) for n, l in enumerate(without_code(text), 1)]
        elif path.startswith("docs/man/") or path.endswith("/openapi.yaml"):
            found[path] = list(enumerate(text.splitlines(), 1))
        elif path.endswith(".c") and not path.startswith("tests/") and path not in OF_EARLIER:
            found[path] = strings(text)
        elif "/web/" in "/" + path or path.startswith(("docs/monitoring/", "docs/slurm/", "docs/integrations/", "schema/json/")) or path in TEXTS:
            found[path] = list(enumerate(text.splitlines(), 1))
    return found


# Those of them that comments of the code have in no other sense.
IN_COMMENTS = re.compile(r"\b(ask(s|ed)? for|(is|are|was) over|(?<!else )(some|any|no)body|(goes|go|going|went) on|"
                         r"control groups?|tells?|told|mend(s|ed|ing)?|sets? aside)\b", re.I)


def comment_words(files):
    """The words that no document uses, in comments."""
    wrong = []
    for path, text in rules.in_rooms(files).items():
        for number, line in enumerate(text.splitlines(), 1):
            comment = re.search(r"(?:^|[^:])//\s.*", re.sub(r'"[^"]*"', '""', line))
            found = comment and IN_COMMENTS.search(comment[0])
            if found:
                wrong.append(f"{path}:{number}: \"{found[0]}\" in a comment: see INSTEAD in tests/rules/prose.py")
    return wrong


def word_room(path):
    """A document is a room of its own; code is by folder."""
    return path if path.startswith("docs/") or "/" not in path or path.endswith((".md", ".yaml")) else path.split("/")[0]


def plain_words(files):
    return [f"{path}:{number}: \"{word}\": {instead}"
            for path, lines in readable(files).items()
            if word_room(path) not in WORDS_NOT_YET
            for number, word, instead in stumbles(lines)]


def clean_by_now(files):
    """Rooms of WORDS_NOT_YET that can be taken off it."""
    found = {word_room(path) for path, lines in readable(files).items() if stumbles(lines)}
    return sorted(WORDS_NOT_YET - found)


def stumbles(lines):
    """[(line number, word, what to write instead)]"""
    return [(number, m[0], list(INSTEAD.values())[m.lastindex - 1])
            for number, line in lines for m in PATTERN.finditer(line)]


RULES = [sentence_length, line_width, links, named_things, plain_words, comment_words]
