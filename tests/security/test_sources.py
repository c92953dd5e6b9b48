"""What the program cannot do, because no line of it says so: run what it reads, start programs, reach the network."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "app.py", *sorted((ROOT / "sim").rglob("*.py")), *sorted((ROOT / "calibration").rglob("*.py"))]
FORBIDDEN_MODULES = {
    *(
        "pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "shelve",
        "marshal",
        "code",
        "codeop",
        "runpy",
        "imp",
        "ctypes",
        "cffi",
    ),
    *("subprocess", "pty", "popen2", "commands", "webbrowser", "xmlrpc", "yaml"),
    *("socket", "ssl", "urllib", "urllib3", "http", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib"),
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
FORBIDDEN_METHODS = {
    ("os", name)
    for name in ("system", "popen", "execv", "execve", "spawnv", "fork", "forkpty", "posix_spawn", "startfile")
}
"""`os.kill` with signal 0 only asks whether a process lives."""


QUICK = ROOT / "sim" / "yamlfile" / "quick.py"
"""The one file that imports PyYAML, and of it only what tells what is written: nothing that makes objects of it."""


def _only_events(node):
    return all(alias.name.endswith("Event") or alias.name in ("YAMLError", "CParser") for alias in node.names)


def _trees():
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES]


def _calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _dotted(node):
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "?")


def _keyword(call, name):
    return next((ast.literal_eval(word.value) for word in call.keywords if word.arg == name), None)


@pytest.fixture(scope="module")
def trees():
    return _trees()


def test_no_module_is_imported_that_runs_code_starts_programs_or_opens_connections(trees):
    for path, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                allowed = path == QUICK and isinstance(node, ast.ImportFrom) and _only_events(node)
                assert allowed or name.split(".")[0] not in FORBIDDEN_MODULES, f"{path}:{node.lineno}"


def test_nothing_is_evaluated(trees):
    for path, tree in trees:
        for call in _calls(tree):
            here = f"{path}:{call.lineno}"
            if isinstance(call.func, ast.Name):
                assert call.func.id not in FORBIDDEN_CALLS, here
            elif isinstance(call.func, ast.Attribute):
                assert (_dotted(call.func.value), call.func.attr) not in FORBIDDEN_METHODS, here
            assert not _keyword_is_true(call, "shell"), here


def _keyword_is_true(call, name):
    return any(word.arg == name and getattr(word.value, "value", True) for word in call.keywords)


def test_what_reads_objects_is_told_to_read_data_only(trees):
    seen = set()
    for path, tree in trees:
        for call in _calls(tree):
            name = _dotted(call.func)
            here = f"{path}:{call.lineno}"
            if name in ("np.load", "numpy.load"):
                assert _keyword(call, "allow_pickle") is False, here
            elif name == "torch.load":
                assert _keyword(call, "weights_only") is True, here
            elif name == "YAML" and _keyword(call, "typ") is not None:
                assert _keyword(call, "typ") == "safe", here
            else:
                continue
            seen.add(name)
    assert seen == {"np.load", "torch.load", "YAML"}


def test_only_one_file_reads_all_of_yaml(trees):
    readers = {
        path.name for path, tree in trees for call in _calls(tree) if _dotted(call.func).endswith("yaml.compose")
    }
    assert readers == {"thorough.py"}
    loads = [
        path for path, tree in trees for call in _calls(tree) if _dotted(call.func).casefold().endswith("yaml.load")
    ]
    assert not loads
