"""Build the documentation as a site, offline, and check every link, picture and frame of it.

make docs

What is not written by hand is made first, in a copy of docs/: the reference from the public names
of the packages, the viewer pages of the gallery by running the gallery's own code on the demo
model, and the notebooks to download.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from check_site import faults_of
from page_blocks import ROOT, Reader

SITE = ROOT / "site"
BUILDERS = {
    "zensical": ("zensical", "build", "--strict", "--clean"),
    "mkdocs": ("mkdocs", "build", "--strict"),
}
COLOUR = re.compile("\x1b\\[[0-9;]*m")
LIVE = "gallery"
"""The page whose code makes the viewer pages that its frames show."""


@dataclass(frozen=True)
class Part:
    """One page of the reference.

    Args:
        module: package whose public names it lists.
        title: heading.
        about: one sentence below it.
    """

    module: str
    title: str
    about: str


PARTS = (
    Part("capturing", "Capture", "From a model and a text, picture or sound to a record."),
    Part("record", "Record", "What attention is here: records, stacks, layers, tokens, masks."),
    Part("foreign", "Foreign records", "Records of what other libraries and engines kept."),
    Part("views", "Views", "From a record to a page, a notebook cell or a widget."),
    Part("views.figures", "Figures", "Views as SVG, PDF and PNG for print."),
    Part(
        "patterns",
        "Patterns",
        "What heads do: labels over many texts, kinds on one text, mechanism.",
    ),
    Part("parts", "Parts", "Turns, documents, sentences and frames, and the tokens of each."),
    Part("answering", "Answers", "Which parts of a prompt an answer looked at, and needed."),
    Part("why", "Why", "Why a model said a word: back through heads to the words."),
    Part("composition", "Composition", "What heads read of what earlier heads wrote."),
    Part("measures", "Measures", "Numbers about a head on one text; pure functions of arrays."),
    Part("norms", "Norms", "What tokens add, where weights say how much they are looked at."),
    Part(
        "interventions",
        "Interventions",
        "Changing what attention does, and the importance of heads.",
    ),
    Part("texts", "Example texts", "Sentences that ship with headscope."),
    Part("tasks", "Tasks", "What a model is scored on."),
    Part("studies", "Studies", "Analyses end to end, and their results."),
    Part("corpus", "Corpus", "A study over many texts, on one machine or many."),
    Part(
        "results",
        "Results",
        "What results of studies have in common: files, tables, figures, pages.",
    ),
    Part("comparison", "Comparison", "Two records, texts or models beside each other."),
    Part("evidence", "Evidence", "Intervals, baselines and corrections."),
    Part("linguistics", "Linguistics", "Words, treebanks, mentions and trees."),
    Part("live", "Live model", "A loaded model in the browser: type, change heads, write on."),
    Part("storage", "Files", "Records and results to disk and back."),
    Part("bertviz", "BertViz", "BertViz's calls over these views."),
    Part("testing", "Testing", "Tiny models, random records, and the examination of a model."),
    Part("errors", "Errors", "Everything that is raised on purpose."),
)


def public_names(module: str) -> list[str]:
    """The names in a module's ``__all__``, read from its source; of a plain module, its classes."""
    place = ROOT / "src" / "headscope" / Path(*module.split("."))
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    stub = source.with_suffix(".pyi")
    if stub.is_file():
        imports = ast.parse(stub.read_text(encoding="utf-8")).body
        return [
            alias.name
            for node in imports
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
    tree = ast.parse(source.read_text(encoding="utf-8"))
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "__all__"
        ):
            return list(ast.literal_eval(node.value))
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def top_names() -> dict[str, list[str]]:
    """The names of ``headscope`` itself, by the package that they come from."""
    tree = ast.parse((ROOT / "src/headscope/__init__.pyi").read_text(encoding="utf-8"))
    return {
        str(node.module): [alias.name for alias in node.names]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "_version"
    }


def write_reference(folder: Path) -> None:
    """One page for each package: what ``headscope`` has of it first, then what else is public."""
    tops = top_names()
    folder.mkdir(exist_ok=True)
    rows = []
    for part in PARTS:
        first = tops.get(part.module, [])
        others = [name for name in public_names(part.module) if name not in first]
        lines = [f"# {part.title}", "", part.about, ""]
        for name in first:
            lines += [f"::: headscope.{name}", ""]
        if others and first:
            lines += [f"## More in headscope.{part.module}", ""]
        if others:
            lines += [f"`from headscope.{part.module} import ...`", ""]
        for name in others:
            lines += [f"::: headscope.{part.module}.{name}", ""]
        (folder / f"{page_of(part)}.md").write_text("\n".join(lines), encoding="utf-8")
        names = ", ".join(f"`{name}`" for name in (first or others)[:6])
        rows.append(f"| [{part.title}]({page_of(part)}.md) | {part.about} | {names} ... |")
    table = ["| page | what | such as |", "| --- | --- | --- |", *rows, ""]
    beginning = (
        "# Reference\n\nEvery public name with its arguments, axes, units and errors, written "
        "from the docstrings; options are spelled out one by one. On the command line: [every "
        "command](../command_line.md).\n\n"
    )
    (folder / "index.md").write_text(beginning + "\n".join(table), encoding="utf-8")


def page_of(part: Part) -> str:
    """The name of its page."""
    return part.module.rpartition(".")[2]


def write_viewer_pages(folder: Path) -> None:
    """Run the code of the gallery, in order, where its frames look for the pages it saves."""
    (folder / "viewer").mkdir(exist_ok=True)
    with contextlib.chdir(folder):
        Reader(LIVE).read()


def write_tutorials(folder: Path) -> None:
    """The notebooks, to download, and each as a page with the outputs that it was committed
    with.
    """
    (folder / "notebooks").mkdir()
    (folder / "tutorials").mkdir(exist_ok=True)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, folder / "notebooks")
        source = notebook.with_suffix(".md")
        title, _, text = source.read_text(encoding="utf-8").partition("\n")
        offer = f"[Download the notebook](../notebooks/{notebook.name})"
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        # the first one installs, and is not in the page
        outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"][1:]
        parts = text.split("```python\n")
        shown = [parts[0]]
        for number, (part, output) in enumerate(zip(parts[1:], outputs, strict=True)):
            code, _, rest = part.partition("```\n")
            pictures = folder / "tutorials" / f"{notebook.stem}-{number}"
            shown.append(f"```python\n{code}```\n{_outputs(output, pictures)}{rest}")
        page = folder / "tutorials" / source.name
        page.write_text(f"{title}\n\n{offer}\n" + "".join(shown), encoding="utf-8")


def _outputs(outputs: list[dict], picture: Path) -> str:
    """What a cell gave, as Markdown; its picture is written beside the page."""
    made = []
    for output in outputs:
        data = output.get("data", {})
        if "text" in output:
            made.append(f"\n```text\n{''.join(output['text']).rstrip()}\n```\n")
        elif "image/png" in data:
            target = picture.with_suffix(".png")
            target.write_bytes(base64.b64decode("".join(data["image/png"])))
            made.append(f"\n![What this cell shows]({target.name})\n")
        elif data:
            made.append(f"\n```text\n{''.join(data['text/plain']).rstrip()}\n```\n")
    return "".join(made)


def build(out: Path, builder: str = "zensical") -> list[str]:
    """Build the site.

    Args:
        out: folder that it is written to; replaced.
        builder: ``"zensical"`` or ``"mkdocs"``.

    Returns:
        what is wrong with it, one line for each fault.
    """
    with TemporaryDirectory() as place:
        desk = Path(place)
        shutil.copytree(ROOT / "docs", desk / "docs")
        shutil.copy(ROOT / "mkdocs.yml", desk)
        for name in ("src", "tools"):
            (desk / name).symlink_to(ROOT / name, target_is_directory=True)
        write_reference(desk / "docs" / "reference")
        write_viewer_pages(desk / "docs")
        write_tutorials(desk / "docs")
        command = [str(Path(sys.executable).parent / BUILDERS[builder][0]), *BUILDERS[builder][1:]]
        plain = os.environ | {"NO_COLOR": "1"}
        done = subprocess.run(
            command, cwd=desk, capture_output=True, text=True, check=False, env=plain
        )
        if done.returncode:
            said = COLOUR.sub("", done.stdout + done.stderr)
            return said.partition("Traceback")[0].splitlines() or [
                "the builder failed and said nothing"
            ]
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(desk / "site", out)
    return faults_of(out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=SITE)
    parser.add_argument("--with", dest="builder", choices=BUILDERS, default="zensical")
    options = parser.parse_args(arguments)
    faults = build(options.out, options.builder)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(options.out / "index.html")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
