"""Rewrite notebooks that were written for BertViz: ``python -m headscope.bertviz NOTEBOOK``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from headscope.errors import FileError, HeadscopeError
from headscope.storage import written_whole

INSIDE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
"""The content of a call's parentheses with up to two more levels inside, enough for calls that load
models. A regular expression cannot match any depth.
"""
INSTALL = re.compile(
    r"^(\s*[!%]\s*(?:python3? -m )?pip3? install\b[^\n]*?)"
    r"(?<![\w.\"'-])bertviz(?:==[\w.]+)?(?![\w.-])",
    re.M,
)
FROM = re.compile(r"^(\s*)from bertviz\b", re.M)
IMPORT = re.compile(r"^(\s*)import bertviz(?= *(?:#.*)?$)", re.M)
IMPORT_AS = re.compile(r"^(\s*)import bertviz(?=(?:\.\w+)* +as\b)", re.M)
IMPORT_PART = re.compile(r"^(\s*)import bertviz(\.\w+)(?= *(?:#.*)?$)", re.M)
ENCODE_PLUS = re.compile(r"\.(?:batch_)?encode_plus\(")
TARGET = re.compile(
    r"^(?P<indent>[ \t]*)with (?P<name>[\w.]+)\.as_target_tokenizer\(\):[ \t]*\n"
    r"(?P<body>(?:(?P=indent)[ \t]+\S.*(?:\n|\Z))+)",
    re.M,
)
LAST = re.compile(rf"\b((?:outputs?|model_outputs?|\w*model\({INSIDE}\)))\[-1\]")
LOADED = re.compile(rf"(?<!\w)(\w*(?:Model|For)\w*\.from_pretrained\()({INSIDE})\)")
SUFFIXES = (".ipynb", ".py")


def rewritten(code: str, *, eager: bool | None = None) -> tuple[str, list[str]]:
    """Code with BertViz's imports replaced by ours, and calls that transformers 5 has removed by
    their replacements.

    Args:
        code: code of one cell, or of a script; it may hold magics.
        eager: whether models are loaded with eager attention, which alone returns weights; by
            default where the code asks for ``output_attentions``.

    Returns:
        the code, and what was changed in it, in a few words each.

    Example:
        >>> rewritten("from bertviz import head_view")
        ('from headscope.bertviz import head_view', ['imports from headscope.bertviz'])
    """
    changed = []
    for rule, words in RULES:
        before, code = code, rule(code)
        if code != before:
            changed.append(words)
    if eager or (eager is None and "output_attentions" in code):
        before, code = code, LOADED.sub(_loaded_eager, code)
        if code != before:
            changed.append("loads models with eager attention, which alone returns weights")
    return code, changed


def rewrite_notebook(
    path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> tuple[Path, list[str]]:
    """Rewrite a notebook or script; the old one stays.

    Outputs of changed cells are removed, because they show what BertViz drew.

    Args:
        path: an .ipynb or .py.
        out: where to write it; by default next to the old one, with ``-headscope`` after its name.

    Returns:
        The path of the new file, and one line for each cell that changed.

    Raises:
        FileError: a file that does not exist, is not a notebook, or does not use BertViz.
    """
    source = Path(path)
    if source.suffix not in SUFFIXES:
        raise FileError(
            f"{source} is neither a notebook nor a script; give a file that ends in "
            f"{' or '.join(SUFFIXES)}"
        )
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {source}: {error}; give a notebook that is there") from None
    beside = source.with_name(f"{source.stem}-headscope{source.suffix}")
    target = beside if out is None else Path(out)
    if "bertviz" not in text:
        raise FileError(f"{source} does not use BertViz; give a notebook that imports bertviz")
    new, lines = _notebook(text, source) if source.suffix == ".ipynb" else rewritten(text)
    with written_whole(target) as temporary:
        temporary.write_text(new, encoding="utf-8")
    return target, lines


def _notebook(text: str, source: Path) -> tuple[str, list[str]]:
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        codes = [_code_of(cell) for cell in cells]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{source} is not a notebook of format 4 ({error}); open and save it in Jupyter"
        ) from None
    # Asked of the whole notebook: a model is often loaded in one cell and asked for weights in
    # another.
    eager = any("output_attentions" in code for code in codes)
    lines = []
    for number, (cell, code) in enumerate(zip(cells, codes, strict=True), 1):
        if cell["cell_type"] != "code":
            continue
        new, changed = rewritten(code, eager=eager)
        if changed:
            cell |= {"source": new.splitlines(keepends=True), "outputs": []}
            cell["execution_count"] = None
            lines.append(f"cell {number}: {'; '.join(changed)}")
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", lines


def _code_of(cell: dict) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _imports(code: str) -> str:
    code = FROM.sub(r"\1from headscope.bertviz", code)
    # Code after it says bertviz.util and so on: the module is imported, and the name bertviz bound.
    code = IMPORT_PART.sub(r"\1import headscope.bertviz as bertviz, headscope.bertviz\2", code)
    code = IMPORT_AS.sub(r"\1import headscope.bertviz", code)
    return IMPORT.sub(r"\1import headscope.bertviz as bertviz", code)


def _for_target(block: re.Match) -> str:
    """The body of the block, outdented by one level, with ``text_target=`` in calls of the
    tokenizer.
    """
    lines = block["body"].splitlines(keepends=True)
    depth = len(lines[0]) - len(lines[0].lstrip())
    body = "".join(block["indent"] + line[depth:] for line in lines)
    return re.sub(
        rf"(?<![\w.]){re.escape(block['name'])}\((?!text_target)",
        f"{block['name']}(text_target=",
        body,
    )


def _loaded_eager(call: re.Match) -> str:
    given = call[2].rstrip()
    if "attn_implementation" in given:
        return call[0]
    comma = "" if given.endswith(",") or not given else ","
    return f'{call[1]}{given}{comma} attn_implementation="eager")'


RULES: tuple[tuple[Callable[[str], str], str], ...] = (
    (lambda code: INSTALL.sub(r'\1"headscope[all]"', code), "installs headscope"),
    (_imports, "imports from headscope.bertviz"),
    (lambda code: ENCODE_PLUS.sub("(", code), "calls the tokenizer in place of encode_plus"),
    (
        lambda code: TARGET.sub(_for_target, code),
        "gives text_target= in place of as_target_tokenizer",
    ),
    (lambda code: LAST.sub(r"\1.attentions", code), "takes .attentions in place of [-1]"),
)
"""Changes of code, in the order in which they are made, and their descriptions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite each notebook and print what was changed; return 1 where one cannot be rewritten."""
    parser = argparse.ArgumentParser(
        prog="python -m headscope.bertviz",
        description="Rewrite a notebook written for BertViz, for headscope and transformers 5.",
    )
    parser.add_argument("notebook", nargs="+", help="an .ipynb or .py; it stays as it is")
    parser.add_argument(
        "--out", help="where to write it (default: next to it, NAME-headscope.ipynb)"
    )
    options = parser.parse_args(arguments)
    if options.out and len(options.notebook) > 1:
        parser.error("--out names one file; give one notebook")
    failed = 0
    for notebook in options.notebook:
        try:
            target, lines = rewrite_notebook(notebook, options.out)
        except HeadscopeError as error:
            print(f"headscope: {error}", file=sys.stderr)  # noqa: T201
            # The other notebooks are still rewritten.
            failed = 1
            continue
        print("\n".join([*lines, f"Wrote {target}"]))  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(main())
