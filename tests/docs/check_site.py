"""Every link of the built manual leads to a page, and to a place on it: ``python tests/docs/check_site.py FOLDER``."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """Addresses that a page links to, and names on it that others may link to."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.names = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[name] for name in ("id", "name") if given.get(name)}
        self.targets |= {given[name] for name in ("href", "src") if given.get(name)}


def broken(folder):
    found = (path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in found}
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.exists():
                yield f"{path.relative_to(folder)} -> {target}"
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].names:
                yield f"{path.relative_to(folder)} -> {target} (no such place)"


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    found = sorted(set(broken(site)))
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    sys.exit(bool(found))
