"""The page in a real browser: a server of its own, and what a visitor does there."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request

from conftest import ROOT


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server():
    """Serve the page on this machine, and yield its address."""
    port = _free_port()
    options = {"server.port": port, "server.headless": "true", "server.fileWatcherType": "none"}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(address, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=2):
            return
        time.sleep(0.2)
    raise TimeoutError(address)


class Visitor:
    """One browser window, which notes every request to elsewhere and every error of the console."""

    def __init__(self, browser, address, **context):
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.address, self.elsewhere, self.errors = address, [], []
        self.page.on("request", self._requested)
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def _requested(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def open(self, address=None):
        self.page.goto(address or self.address)
        self.page.get_by_role("heading", level=2).first.wait_for(timeout=60_000)
        return self

    def cards(self):
        """Return the text of every card, once the page is whole."""
        self.page.get_by_role("button", name="JSON", exact=True).wait_for(timeout=60_000)
        self.settle()
        return self.page.locator("[data-testid=stMetric]").all_inner_texts()

    def settle(self):
        """Wait until the page does not run any more."""
        self.page.wait_for_function(
            "() => !document.querySelector('[data-testid=stStatusWidget]')"
            " && !document.querySelector('[data-stale=true]')",
            timeout=60_000,
        )

    def choose(self, label, option):
        """Choose *option* of the box with that *label*, by keyboard."""
        box = self.page.get_by_role("combobox", name=label, exact=False).first
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).click()

    def download(self, button):
        """Return the path of what the *button* gives."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=button, exact=True).click()
        return download.value.path()
