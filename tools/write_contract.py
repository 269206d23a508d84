"""Write the JSON schema of the page contract, from which the TypeScript types are generated.

python tools/write_contract.py           write frontend/src/contract/page.schema.json
python tools/write_contract.py --check   exit 1 if the file differs from what would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import TypeAdapter

from headscope.views import contract as _contract
from headscope.views.options import PageSelection, declared

SCHEMA = Path(__file__).parent.parent / "frontend/src/contract/page.schema.json"


def schema() -> str:
    """The schema of `headscope.views.contract.Page`, with the field docstrings as descriptions."""
    for kind in vars(_contract).values():
        if isinstance(kind, type) and hasattr(kind, "__total__"):
            kind.__pydantic_config__ = {"use_attribute_docstrings": True}
    found = TypeAdapter(_contract.Page).json_schema()
    # a page may hold further pages, so pydantic defines it beside the others and refers to it; here
    # it is the whole
    whole = found["$defs"].pop("Page")
    _describe_selection(found["$defs"]["PageSelection"])
    found = json.loads(json.dumps(found | whole).replace('"#/$defs/Page"', '"#"'))
    del found["$ref"]
    return json.dumps(_without_titles(found) | {"title": "Page"}, indent=2) + "\n"


def _describe_selection(schema) -> None:
    """Say of every part of a selection what it is, and that it is there: pydantic reads only what
    stands in the class itself, and not in those that it is put together from.
    """
    parts = declared(PageSelection)
    for name, option in parts.items():
        schema["properties"][name]["description"] = option.help
    schema["required"] = list(parts)


def _without_titles(node):
    """The schema without pydantic's titles, which would become one TypeScript alias for each
    field.
    """
    if isinstance(node, list):
        return [_without_titles(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _without_titles(value)
        for name, value in node.items()
        if not (name == "title" and isinstance(value, str))
    }
    if (
        "$ref" in kept and len(kept) > 1
    ):  # beside a description the reference would become a type of its own
        kept["allOf"] = [{"$ref": kept.pop("$ref")}]
    if kept.get("type") == "object":
        kept.setdefault("additionalProperties", False)
    return kept


def main() -> None:
    """Write the schema, or compare."""
    wanted = schema()
    if "--check" not in sys.argv[1:]:
        SCHEMA.write_text(wanted, encoding="utf-8")
    elif SCHEMA.read_text(encoding="utf-8") != wanted:
        sys.exit(f"{SCHEMA} does not match headscope.views.contract: run `make contract`")


if __name__ == "__main__":
    main()
