"""The same parsers under atheris, which steers by what lines an input reaches: ``pip install atheris``, then

::

    python tests/fuzz/guided.py trace -runs=100000
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

with atheris.instrument_imports(include=["sim", "calibration"]):
    from fuzz.parsers import PARSERS

    from sim.errors import SimError


def main() -> None:
    """Feed one parser until it does something wrong, or as often as ``-runs`` says."""
    parser = PARSERS[sys.argv[1]]
    with TemporaryDirectory() as folder:
        path, corpus = Path(folder) / "files" / parser.file, Path(folder) / "corpus"
        path.parent.mkdir(parents=True)
        corpus.mkdir()
        for beside, content in parser.beside().items():
            path.with_name(beside).write_bytes(content)

        def feed(content: bytes) -> None:
            path.write_bytes(content)
            try:
                parser.read(path)
            except SimError as refusal:
                assert "\n" not in str(refusal)  # noqa: PT017 - both outcomes are right

        for number, content in enumerate(parser.seeds()):
            (corpus / str(number)).write_bytes(content)
            with atheris.instrument_imports(include=["sim", "calibration"]):  # what a parser imports late
                feed(content)
        atheris.Setup([sys.argv[0], str(corpus), "-timeout=10", "-rss_limit_mb=2048", *sys.argv[2:]], feed)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
