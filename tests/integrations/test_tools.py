# SPDX-License-Identifier: Apache-2.0
"""Files for other programs (docs/INTEGRATIONS.md), read and run by the programs themselves. They come from PyPI
(tools/integrations.sh). A test whose program is missing is skipped, and says which."""
import html.parser
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import types
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from conftest import ROOT, Daemon, build_dir, fake_bench_env  # noqa: E402 pylint: disable=wrong-import-position
from conftest import numaprobed, open_to_ranks  # noqa: E402,F401 pylint: disable=wrong-import-position,unused-import

SHIPPED = ROOT / "docs" / "integrations"
TOOLS = ROOT / "build" / "integrations" / "bin"
EB = SHIPPED / "easybuild" / "numaprobe-0.1.0-gompi-2023b.eb"


def needs(program):
    return pytest.mark.skipif(not (TOOLS / program).exists(), reason=f"{program} is not there (tools/integrations.sh)")


def needs_module(name):
    there = (TOOLS / "python").exists() and not subprocess.run([TOOLS / "python", "-c", f"import {name}"], capture_output=True).returncode
    return pytest.mark.skipif(not there, reason=f"the module {name} is not there (tools/integrations.sh)")


def tool(*words, cwd=None, home, **env):
    """A program of PyPI with a home of its own."""
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, cwd=cwd, stdin=subprocess.DEVNULL,
                          env={"PATH": f"{TOOLS}:{build_dir()}/bench:{build_dir()}/client:{os.environ['PATH']}", "HOME": str(home),
                               "NO_COLOR": "1", "LANG": "C.UTF-8", **env})


def python(code, *arguments, home):
    """Python of the environment: what the code prints as JSON."""
    done = tool(TOOLS / "python", "-c", code, *arguments, home=home)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def node(numaprobed, tmp_path_factory):  # noqa: F811
    """A daemon with two runs and a baseline."""
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env()).start()
    for _ in range(2):
        assert daemon.run(cpus="0", size="1-512")["state"] == "succeeded"
    assert daemon.request("PUT", "/v1/baselines/default", {"run": 1}).status == 200
    yield daemon
    daemon.stop()


# ---- Kubernetes, Grafana

@needs_module("kubernetes_validate")
def test_kubernetes_accepts_the_daemonset(tmp_path):
    """Against the schema of the API server, where a member that it does not know is an error."""
    code = """if True:
        import json, sys, yaml, kubernetes_validate
        for document in yaml.safe_load_all(open(sys.argv[1])):
            if len(sys.argv) > 2:
                document.setdefault("spec", {})[sys.argv[2]] = 1
            kubernetes_validate.validate(document, "1.31", strict=True)
        print(json.dumps(True))"""
    file = SHIPPED / "kubernetes" / "numaprobe-labels.yaml"
    assert python(code, file, home=tmp_path)
    with pytest.raises(AssertionError, match="replica"):
        python(code, file, "replica", home=tmp_path)


# What belongs to the data source, not to the dashboard.
OF_PROMETHEUS = {"step", "titleFormat", "textFormat", "tagKeys"}


def lost(before, after, path=""):
    """Members that are in the first but not in the second."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [p for k, v in before.items() for p in (lost(v, after[k], f"{path}/{k}") if k in after else [f"{path}/{k}"])]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [p for i, (a, b) in enumerate(zip(before, after)) for p in lost(a, b, f"{path}/{i}")]
    return [] if before == after else [path]


@needs_module("grafana_foundation_sdk")
@pytest.mark.parametrize("name", ["numaprobe-dashboard.json", "numaprobe-fleet-dashboard.json"])
def test_grafana_knows_each_member_of_the_dashboard(name, tmp_path):
    """Read and written again by Grafana's own model, nothing is missing: no member is misspelled, each has its type."""
    code = """if True:
        import json, sys
        from grafana_foundation_sdk.cog import plugins
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.models.dashboard import Dashboard
        plugins.register_default_plugins()
        print(JSONEncoder().encode(Dashboard.from_json(json.load(open(sys.argv[1])))))"""
    file = ROOT / "docs" / "monitoring" / name
    board = json.loads(file.read_text())
    gone = [p for p in lost(board, python(code, file, home=tmp_path)) if p.rpartition("/")[2] not in OF_PROMETHEUS]
    assert not gone, gone
    board["panels"][-1]["unknown_member"] = "x"
    (tmp_path / "bad.json").write_text(json.dumps(board))
    assert [p.rpartition("/")[2] for p in lost(board, python(code, tmp_path / "bad.json", home=tmp_path))
            if p.rpartition("/")[2] not in OF_PROMETHEUS] == ["unknown_member"]


# ---- Ansible

ROLE = SHIPPED / "ansible"


@needs("ansible-lint")
def test_ansible_lint_has_nothing_to_say(tmp_path):
    shutil.copytree(ROLE, tmp_path / "ansible")
    done = tool("ansible-lint", "--offline", "-f", "pep8", "--profile", "production", "site.yml", "roles", cwd=tmp_path / "ansible",
                home=tmp_path)
    assert done.returncode == 0 and "Passed: 0 failure(s), 0 warning(s)" in done.stderr, done.stdout + done.stderr


def play(folder, settings):
    """The parts of the role that need no package and no systemd, for two nodes that are this machine."""
    (folder / "inventory").write_text("[numaprobe]\nnode01 ansible_connection=local\n"
                                      "node02 ansible_connection=local ansible_host=192.0.2.7\n")
    variables = {"numaprobe_config": f"{folder}/numaprobed.conf", "numaprobe_daemon": str(build_dir() / "daemon" / "numaprobed"),
                 "numaprobe_targets": f"{folder}/targets.json", "numaprobe_settings": settings, "ansible_become": False,
                 "ansible_python_interpreter": sys.executable}
    return tool("ansible-playbook", "-i", folder / "inventory", "--limit", "all", ROLE / "site.yml", "--tags", "config,scrape",
                "--forks", "1", "-e", json.dumps(variables), home=folder)


@needs("ansible-playbook")
def test_the_role_writes_settings_and_targets_once(tmp_path):
    first = play(tmp_path, {"keep_days": 30, "log_level": "debug"})
    assert first.returncode == 0, first.stdout + first.stderr
    config = (tmp_path / "numaprobed.conf").read_text()
    assert config.splitlines()[-2:] == ["keep_days = 30", "log_level = debug"]
    assert json.loads((tmp_path / "targets.json").read_text()) == [{"targets": ["node01:7780", "192.0.2.7:7780"]}]
    again = play(tmp_path, {"keep_days": 30, "log_level": "debug"})
    assert again.returncode == 0 and set(re.findall(r"changed=(\d)", again.stdout)) == {"0"}, again.stdout


@needs("ansible-playbook")
def test_the_role_refuses_a_setting_that_the_daemon_refuses(tmp_path):
    done = play(tmp_path, {"keep_dais": 30})
    assert done.returncode and "keep_dais" in done.stdout + done.stderr, done.stdout
    assert not (tmp_path / "numaprobed.conf").exists(), "and writes nothing"


# ---- ReFrame

def reframe(folder, *words, **env):
    return tool("reframe", "--prefix", folder / "prefix", "-c", SHIPPED / "reframe" / "numaprobe.py", "-r", "--performance-report",
                "--nocolor", *words, home=folder, cwd=folder, **env)


@needs("reframe")
def test_reframe_measures_and_checks(node, tmp_path):
    done = reframe(tmp_path, "-S", "numa_bench_matrix.size=4M", "-S", "numa_bench_matrix.most_disturbed=1.0",
                   NUMAPROBE_URL=f"http://127.0.0.1:{node.port}")
    assert done.returncode == 0 and "Ran 2/2 test case(s)" in done.stdout, done.stdout[-4000:]
    assert re.search(r"P: least: [1-9][\d.]* ns", done.stdout) and re.search(r"P: worst: -?[\d.]+ %", done.stdout)


@needs("reframe")
def test_reframe_states_why_it_fails(tmp_path):
    lost_daemon = reframe(tmp_path, "-n", "numaprobe_check", NUMAPROBE_URL=f"unix:{tmp_path}/none")
    assert lost_daemon.returncode and "Reason: sanity error: NUMAPROBE UNKNOWN - no daemon responds" in lost_daemon.stdout
    wrong = reframe(tmp_path, "-n", "numa_bench_matrix", "-S", "numa_bench_matrix.size=nonsense")
    assert wrong.returncode and "numa_bench printed no value" in wrong.stdout, wrong.stdout[-3000:]


# ---- EasyBuild, Spack

@needs_module("easybuild")
def test_easybuild_reads_the_file_and_likes_its_style(tmp_path):
    code = """if True:
        import json, sys
        from easybuild.tools.options import set_up_configuration
        set_up_configuration(args=["--allow-use-as-root-and-accept-consequences", "--module-syntax=Tcl", "--prefix=" + sys.argv[2],
                                   "--modules-tool=EnvironmentModulesC"], silent=True)
        from easybuild.framework.easyconfig.easyconfig import get_easyblock_class
        from easybuild.framework.easyconfig.parser import EasyConfigParser
        from easybuild.framework.easyconfig.style import check_easyconfigs_style
        from easybuild.framework.easyconfig.templates import TEMPLATE_CONSTANTS
        found = EasyConfigParser(sys.argv[1]).get_config_dict()
        found["class"] = get_easyblock_class(found["easyblock"]).__name__
        found["style"] = check_easyconfigs_style([sys.argv[1]])
        print(json.dumps(found))"""
    found = python(code, EB, tmp_path, home=tmp_path)
    assert (found["class"], found["style"]) == ("MesonNinja", 0)
    assert EB.name == f"{found['name']}-{found['version']}-{found['toolchain']['name']}-{found['toolchain']['version']}.eb"
    version = re.search(r"^  version: '([\d.]+)'", (ROOT / "meson.build").read_text(), re.M)[1]
    assert found["version"] == version and "-Ddaemon=false" in found["configopts"]


# A pkg-config that does not know the libraries of the daemon.
WITHOUT = """#!/bin/sh
case " $* " in *" hwloc "* | *" sqlite3 "* | *" libmicrohttpd "* | *" gnutls "*) exit 1 ;; esac
exec pkg-config "$@"
"""


@pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed")
def test_numa_bench_and_the_client_build_alone(tmp_path):
    """With the options that Spack and EasyBuild use, without the daemon's libraries: what EasyBuild's file expects is there, and its
    commands work."""
    wrapper = tmp_path / "pkg-config"
    wrapper.write_text(WITHOUT)
    wrapper.chmod(0o755)
    expected = runpy.run_path(str(EB), init_globals={"SOURCELOWER_TAR_GZ": ""})
    around = {**os.environ, "PKG_CONFIG": str(wrapper)}
    for words in (["setup", tmp_path / "build", ROOT, f"--prefix={tmp_path}/prefix", *expected["configopts"].split()],
                  ["install", "-C", tmp_path / "build"]):
        done = subprocess.run(["meson", *map(str, words)], capture_output=True, text=True, timeout=600, env=around)
        assert done.returncode == 0, done.stdout[-3000:]
    paths = expected["sanity_check_paths"]
    for name in [*paths["files"], *paths["dirs"]]:
        assert (tmp_path / "prefix" / name).exists(), name
    assert not [p for p in (tmp_path / "prefix").rglob("numaprobed*") if "doc" not in p.parts], "no daemon"
    path = f"{tmp_path}/prefix/bin:{os.environ['PATH']}"
    for command in expected["sanity_check_commands"]:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path})
        assert done.returncode == 0, done


def test_the_daemon_is_not_left_out_of_tests(tmp_path):
    done = subprocess.run(["meson", "setup", tmp_path / "build", ROOT, "-Ddaemon=false"], capture_output=True, text=True, timeout=300)
    assert done.returncode and "the tests need the daemon: -Dtests=false" in done.stdout, done.stdout[-2000:]


class Recipe:
    """A stand-in of Spack's directives, which is not on PyPI: it writes down what the recipe says."""

    def __init__(self):
        self.said, self.conditions = [], []
        names = ("license", "version", "variant", "depends_on")
        self.names = {n: self.directive(n) for n in names}
        self.names |= {"when": self.when, "run_after": lambda phase: lambda f: f, "on_package_attributes": lambda **kw: lambda f: f,
                       "join_path": os.path.join, "Executable": None, "MesonPackage": type("MesonPackage", (), {})}

    def directive(self, name):
        return lambda *words, **kw: self.said.append((name, words, kw, tuple(self.conditions)))

    def when(self, condition):
        recipe = self

        class Block:
            def __enter__(self):
                recipe.conditions.append(condition)

            def __exit__(self, *_):
                recipe.conditions.pop()
        return Block()


def test_the_recipe_of_spack_states_what_the_build_needs(monkeypatch):
    recipe = Recipe()
    for name in ("spack", "spack.package", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems",
                 "spack_repo.builtin.build_systems.meson"):
        module = types.ModuleType(name)
        module.__dict__.update(recipe.names, __all__=list(recipe.names))
        monkeypatch.setitem(sys.modules, name, module)
    package = runpy.run_path(str(SHIPPED / "spack" / "numaprobe" / "package.py"))["Numaprobe"]
    options = set(re.findall(r"-D(\w+)=", " ".join(package.meson_args(types.SimpleNamespace(spec=[])))))
    assert options <= set(re.findall(r"^option\('(\w+)'", (ROOT / "meson_options.txt").read_text(), re.M))
    assert "-Ddaemon=false" in package.meson_args(types.SimpleNamespace(spec=[]))
    assert "-Ddaemon=true" in package.meson_args(types.SimpleNamespace(spec=["+daemon"]))
    needed = {w[0].split("@")[0]: c for n, w, _, c in recipe.said if n == "depends_on"}
    always = {k for k, c in needed.items() if not c}
    assert {"cjson", "curl", "libmd", "mpi", "numactl", "meson", "python"} <= always
    assert {k for k, c in needed.items() if c == ("+daemon",)} == {"gnutls", "hwloc", "libmicrohttpd", "py-pyyaml", "sqlite"}
    versions = [w[0] for n, w, _, _ in recipe.said if n == "version"]
    assert re.search(r"^  version: '([\d.]+)'", (ROOT / "meson.build").read_text(), re.M)[1] in versions


# ---- RHEL and SLES

@pytest.mark.skipif(not shutil.which("rpmspec"), reason="rpm is not installed")
@pytest.mark.parametrize("defined, heading", [([], "RHEL 9"), (["--define", "suse_version 1500"], "SLES 15")])
def test_the_spec_has_the_names_of_the_manual(defined, heading):
    spec = ROOT / "tools" / "packaging" / "numaprobe.spec"
    table = [[c.strip() for c in line.strip("|").split("|")] for line in (ROOT / "docs" / "INSTALL.md").read_text().splitlines()
             if line.startswith("|")]
    head = next(row for row in table if row[0] == "for")
    column = next(i for i, cell in enumerate(head) if cell.startswith(heading))
    first = table.index(head)
    rows = table[first + 2:1 + next(i for i, row in enumerate(table) if i > first and row[0] == "running")]
    named = {n for row in rows for n in re.findall(r"`([\w.-]+)`", row[column if row[column] != "the same" else 1])}
    for query, more in (("--buildrequires", set()), ("--requires", {"util-linux", "shadow", "shadow-utils"})):
        done = subprocess.run(["rpmspec", *defined, "-q", query, spec], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done
        needed = {line.split()[0] for line in done.stdout.splitlines() if not re.match(r"rpmlib|/|config\(|lib\w+\.so", line)}
        assert len(needed) > 2 and needed <= named | more, needed - named


# ---- pandas

@needs_module("pandas")
def test_pandas_reads_a_run_as_the_guide_has_it(node, tmp_path):
    guide = (ROOT / "docs" / "GUIDE.md").read_text()
    code = re.search(r"```python\n(.*?)```", guide, re.S)[1]
    assert "http://127.0.0.1:7780/v1/runs/17/matrix.csv" in code
    code = code.replace("http://127.0.0.1:7780/v1/runs/17/", f"http://127.0.0.1:{node.port}/v1/runs/1/")
    code += "\nimport json\nprint(json.dumps({'rows': len(cells), 'columns': list(cells), 'types': [str(t) for t in cells.dtypes]}))\n"
    found = python(code, home=tmp_path)
    assert found["rows"] == 10 and {"matrix", "rank", "working_set_bytes", "median_ns"} <= set(found["columns"]), found
    assert found["types"][found["columns"].index("median_ns")] == "float64"
    done = tool(TOOLS / "python", "-c", code.replace("/v1/runs/1/", "/v1/runs/99/"), home=tmp_path)
    assert done.returncode and "404" in done.stderr


# ---- the site

class Page(html.parser.HTMLParser):
    """Links and anchors of a page, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[k] for k in ("id", "name") if found.get(k)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("link", "script", "img", "iframe", "source", "form") and (target := found.get("href") or found.get("src")):
            self.loads.append(target)


@needs("mkdocs")
def test_the_site_is_complete_and_loads_nothing_from_elsewhere(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run([ROOT / "tools" / "site", site], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and done.stdout == f"{site}/index.html\n", done.stdout + done.stderr
    pages = {p: Page(p) for p in site.rglob("*.html")}
    assert site / "index.html" in pages and {p.stem for p in (ROOT / "docs").glob("*.md")} <= {p.stem for p in pages}
    wrong = []
    for path, page in pages.items():
        wrong += [f"{path}: loads {t}" for t in page.loads if re.match(r"(https?:)?//", t)]
        for link in page.links + page.loads:
            target, _, anchor = link.partition("#")
            if re.match(r"(https?:)?//|mailto:|data:", link):
                continue
            place = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
            if path.name != "404.html" and not place.exists():
                wrong.append(f"{path}: {link}: there is no such file")
            elif place in pages and urllib.parse.unquote(anchor) not in pages[place].anchors:
                wrong.append(f"{path}: {link}: there is no such heading")
    assert not wrong, "\n".join(wrong[:20])
    for style in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = style.read_text(encoding="utf-8", errors="replace")
        assert not re.search(r"@import|url\([\"']?(https?:)?//|fetch\([\"']https?:|importScripts\([\"']https?:", text), style


@needs("mkdocs")
def test_the_site_fails_if_a_link_leads_nowhere(tmp_path):
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tools/site"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "GUIDE.md").write_text("# Guide\n\n[gone](nowhere.md)\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "integrations").symlink_to(TOOLS.parent)
    done = subprocess.run([tmp_path / "tools" / "site", tmp_path / "out"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and "nowhere.md" in done.stdout + done.stderr, done
