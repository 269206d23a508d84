"""Find a Chromium for the browser tests and print its path.

python tools/find_chromium.py             exit 1 with a reason if there is none
python tools/find_chromium.py --install   install one first where there is none
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The headless shell draws the same pages without the rest of a browser: tests take less than half
# of the processor time in it.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""How to start it for tests: pictures that do not depend on a graphics card, and no request of its
own.
"""
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find() -> str | None:
    """The path in HEADSCOPE_CHROMIUM, a Chromium on PATH, or the one Playwright installed."""
    if named := os.environ.get("HEADSCOPE_CHROMIUM"):
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if MAC.exists():
        return str(MAC)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def install() -> None:
    """Install one: Playwright's own, or the distribution's where that cannot be downloaded. Debian
    has the headless shell as a package of its own, other distributions the whole browser only.
    """
    if _run(sys.executable, "-m", "playwright", "install", "chromium"):
        return
    if shutil.which("apt-get"):
        prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
        _run(*prefix, "apt-get", "update", "--quiet")
        for package in ("chromium-headless-shell", "chromium"):
            if _run(*prefix, "apt-get", "install", "--yes", "--quiet", package):
                return


def _run(*command: str) -> bool:
    print("$", *command, file=sys.stderr)
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def needed() -> str:
    """The path, or an end with what to do."""
    return find() or sys.exit(
        "No Chromium was found: install one, or name it in HEADSCOPE_CHROMIUM"
    )


def main() -> None:
    """Print the path, or say what to do."""
    if "--install" in sys.argv[1:] and find() is None:
        install()
    print(needed())


if __name__ == "__main__":
    main()
