"""Rewrite the links of a page of the server, so that they lead to the files of a site."""

import html
import posixpath
import re
from collections.abc import Mapping

from nexmark.web.entry import PREFIX

_LINK = re.compile(rf'\s(href|src)="{PREFIX}(/[^"#]*)(#[^"]*)?"')
_OF_QUERY = re.compile(r"(/night/[^/]+/[^/]+)/query/([^/]+)")


def with_files(page: str, address: str, files: Mapping[str, str]) -> str:
    """Return a page whose links lead to files, relative to the file of the page.

    A link to a query that has no page leads to its line in the page of the night. A link to any
    other page that the site does not have, as to the same page in another order, is left out: its
    text stays.

    Args:
        page: The HTML of the page.
        address: The address of the page on the server.
        files: The path of each page and file in the site, by its address on the server.
    """
    directory = posixpath.dirname(files[address])

    def rewritten(match: re.Match[str]) -> str:
        name, target, fragment = match[1], html.unescape(match[2]), match[3] or ""
        file = _file(target, address, files)
        if file is None:
            return ""
        path, _, place = file.partition("#")
        link = posixpath.relpath(path, directory or ".") if path else ""
        return f' {name}="{html.escape(link)}{f"#{place}" if place else fragment}"'

    return _LINK.sub(rewritten, page)


def _file(target: str, address: str, files: Mapping[str, str]) -> str | None:
    """Return the file to which a link leads, with a fragment or a version; None if there is none.

    Args:
        target: The address to which the link leads on the server.
        address: The address of the page with the link.
        files: The path of each page and file, by its address.
    """
    if target in files:
        return files[target]
    path, _, variant = target.partition("?")
    if path == address:
        return None
    if path in files:
        return f"{files[path]}?{variant}" if path.startswith("/assets/") else files[path]
    of_query = _OF_QUERY.fullmatch(path)
    if of_query and of_query[1] in files:
        fragment = f"#query-{of_query[2]}"
        return fragment if of_query[1] == address else f"{files[of_query[1]]}{fragment}"
    return None
