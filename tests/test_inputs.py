"""The check of inputs finds what it is for, and finds none in src."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_inputs  # noqa: E402


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(text, str)",
        "isinstance(texts[0], tuple | list)",
        "isinstance(source.text, collections.abc.Mapping)",
        "'text_b' in row",
        "set(row) <= {'text', 'text_b'}",
        "{'image', 'sound'} & set(row)",
        "row.get('image')",
    ],
)
def test_a_question_of_what_an_input_is_is_found(source, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(source)
    assert [place.split(": ", 1)[1] for place in check_inputs.asked(path, tmp_path)] == [
        source.replace('"', "'")
    ]


@pytest.mark.parametrize(
    "source", ["isinstance(given, ParsedInput)", "text is None", "row.get('label')", "'a' in text"]
)
def test_other_questions_are_none(source, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(source)
    assert not list(check_inputs.asked(path, tmp_path))
