"""The web page without a browser."""

import time

from conftest import ROOT
from streamlit.testing.v1 import AppTest


def opened(*, settle=True, **query):
    """Open the page by a link, and wait until it has *settled*; ``__`` stands for a dot in the names of *query*."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, text in query.items():
        page.query_params[key.replace("__", ".")] = text
    return settled(page.run()) if settle else page.run()


def settled(page):
    """Run the page until nothing is in progress."""
    while any(button.label == "Stop" for button in page.button):
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def widget(page, kind, path):
    """Return the widget of the field at the dotted *path*."""
    return next(each for each in page.get(kind) if (each.key or "").startswith(f"{path}|"))


def cards(page):
    """Return the text of every card by its label."""
    return {card.label: card.value for card in page.metric}
