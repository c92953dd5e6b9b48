"""Sees what a parser does beside parsing: files that it writes, code that it runs, programs and sockets it opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

_FORBIDDEN = (
    *("subprocess.", "socket.", "urllib.", "http.", "ftplib.", "smtplib.", "pickle.", "ctypes.dl", "os.system"),
    *("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.kill", "pty.", "webbrowser."),
)
_WRITING = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.utime", "shutil.copy", "shutil.move", "shutil.rmtree", "tempfile.mk"),
)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Forbidden(BaseException):
    """No `Exception`, so that nothing swallows it on its way."""


class Guard:
    """An audit hook over the process, armed while a parser runs.

    Parameters
    ----------
    code_below
        Folders of installed code: what is imported from there late is no input that runs.
    """

    def __init__(self, code_below: tuple[str, ...]) -> None:
        self._code_below = code_below
        self._folder, self._armed = "", False
        self._seen: str | None = None
        self._readable: tuple[str, ...] | None = None
        sys.addaudithook(self._hook)

    @contextmanager
    def armed(self, folder: Path, readable: tuple[str, ...] | None = None) -> Iterator[None]:
        """Raise `Forbidden` for what a parser must not do, even if something catches it on its way.

        It may write into *folder* only. *readable* are the only folders to read from; missing: anything may be read.
        """
        self._folder = f"{os.path.realpath(folder)}{os.sep}"
        self._seen, self._readable, self._armed = None, readable, True
        try:
            yield
        finally:
            self._armed = False
        if self._seen is not None:
            raise Forbidden(self._seen)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        complaint = self._complaint(event, arguments)
        if complaint is not None:
            self._seen = complaint
            raise Forbidden(complaint)

    def _complaint(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            return self._opened(*arguments)
        if event == "exec":
            return self._ran(arguments[0])
        if event.startswith(_FORBIDDEN):
            return f"{event}{arguments!r}"[:200]
        if event.startswith(_WRITING) and not self._inside(arguments[0]):
            return f"{event} outside of its folder: {arguments!r}"[:200]
        return None

    def _opened(self, path: Any, _mode: Any, flags: int) -> str | None:
        if isinstance(path, int) or path is None:
            return None
        if flags & _WRITE_FLAGS:
            return None if self._inside(path) else f"writes {os.fsdecode(path)}"
        if self._readable is None or str(path).endswith((".py", ".pyc", ".so")):
            return None
        real = os.path.realpath(os.fsdecode(path))
        return None if real.startswith((*self._readable, self._folder)) else f"reads {real}"

    def _ran(self, code: Any) -> str | None:
        """Return what runs, unless it is code of our own; reading a literal compiles and runs nothing."""
        name = code.co_filename if isinstance(code, CodeType) else repr(code)
        installed = name.startswith((*self._code_below, "<frozen"))
        return None if installed or _is_own() else f"runs {name}"[:200]

    def _inside(self, path: Any) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and os.path.realpath(os.fsdecode(path)).startswith(
            self._folder
        )


def _is_own() -> bool:
    """Tell whether the code is of a module that is imported late, or an annotation in one that is resolved."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>" or frame.f_code.co_name == "get_type_hints":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
