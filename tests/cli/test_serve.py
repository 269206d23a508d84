"""headscope serve, as a process: what it prints, and how it ends."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record
from headscope.views import _html

from .conftest import complaint, run_line

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

# Where the tests run in the background, shells have them and their children ignore SIGINT.
SERVE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from headscope.views import _html
_html.bundle = lambda name="page.js": f"export const name = '{name}';"
from headscope.cli import main
main()
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"export const name = '{name}';")
    return str(hs.save(random_record(), tmp_path / "run.safetensors"))


@contextmanager
def serving(*arguments, lines):
    """A server in a process of its own, and the first lines that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, [process.stdout.readline() for _ in range(lines)]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def started(file):
    with serving(file, lines=3) as both:
        yield both


def get(address, token="", *, asks=None):
    headers = {"X-Headscope-Token": token}
    if asks is not None:
        headers |= {"Content-Type": "application/json", "Origin": "/".join(address.split("/")[:3])}
    body = None if asks is None else json.dumps(asks).encode()
    request = urllib.request.Request(address, body, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode(errors="replace")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
@pytest.mark.parametrize(
    ("name", "code", "word", "connected"),
    [("SIGINT", 130, "interrupted", True), ("SIGTERM", 143, "terminated", False)],
    ids=["with an open connection", "alone"],
)
def test_it_serves_until_it_is_interrupted_and_ends_cleanly(name, code, word, connected, started):
    process, lines = started
    assert lines[0].startswith("random: cross 2 layers x 3 heads")
    address = re.fullmatch(
        r"Listening on (http://127\.0\.0\.1:(\d+)/\?token=[\w-]{32})\n", lines[1]
    )
    assert lines[2] == "Ctrl-C ends it\n"
    base, token = address[1].split("?token=")
    assert 'id="headscope"' in get(address[1])
    assert '"title"' in get(f"{base}header.json", token)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(f"{base}header.json?token={token}")
    held = socket.create_connection(("127.0.0.1", int(address[2]))) if connected else None
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, "", f"headscope: {word}\n")
    if held:
        held.close()


def test_a_port_that_is_taken_is_one_line(file, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["serve", file, "--port", str(port)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"headscope: Cannot listen on port {port}: ")
    assert "choose another with --port, or omit it for any free one" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("gone.safetensors", "headscope: gone.safetensors does not exist"),
        ("FILE --include-layers 1 9", "headscope: include_layers=[1, 9]: this record has"),
        ("FILE --quantity alti", "headscope: quantity='alti': this record has 'weight'"),
        ("FILE --evidence-of a.docx", "headscope: Expected .txt, .jsonl, .csv"),
        ("FILE --port 99999", "headscope: Cannot listen on port 99999: a port is a number from 0"),
        ("FILE --port -1", "headscope: Cannot listen on port -1: a port is a number from 0"),
    ],
    ids=["no file", "no layer", "no quantity", "no texts", "no port", "negative"],
)
def test_bad_input_is_one_line(arguments, line, file, capsys):
    assert run_line(f"serve {arguments}".replace("FILE", str(file))) == 1
    assert complaint(capsys).startswith(line)


def test_it_shows_what_headscope_view_can_show(file, monkeypatch):
    seen = []

    class Nothing:
        def run(self, sockets):
            pass

    monkeypatch.setattr("headscope.views.server.application", lambda view, _: seen.append(view))
    monkeypatch.setattr("headscope.views.listening.quiet_server", lambda _: Nothing())
    assert run_line(f"serve {file} --view matrix --evidence") == 0
    options = seen[0].options
    assert options["view"] == "matrix"
    assert options["evidence"].texts == 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tiny causal model, 3 layers of 5 heads, and its tokenizer."""
    from headscope.testing import tiny_model, tiny_tokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("gpt2", writes=True).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_an_atlas_of_another_model_is_one_line_before_anything_is_served(model, tmp_path, capsys):
    from headscope.testing import tiny_model, tiny_tokenizer

    other = tiny_model("gpt2", n_layer=2)
    atlas = hs.atlas(other, tiny_tokenizer(), ["the cat sat."], battery=False, progress=False)
    atlas = str(atlas.save(tmp_path / "result.safetensors"))
    for record, options, line in [
        ("the cat", ["--model", str(model), "--atlas", atlas], "The atlas is of "),
        ("the cat", ["--model", str(model), "--atlas", "gone"], "gone does not exist"),
        ("run.safetensors", ["--atlas", atlas], "--atlas is of the model of --model"),
        ("the cat", ["--model", str(model), "--beside", "a", "b"], "Expected one model"),
        ("the cat", ["--model", str(model), "--evidence"], "Options of a page are for a record"),
    ]:
        assert run(["serve", record, *options]) == 1
        out, err = capsys.readouterr()
        assert (err.count("\n"), out) == (1, "")
        assert err.startswith(f"headscope: {line}")


def test_two_models_are_loaded_and_asked_in_one_process(model):
    options = ["--model", str(model), "--beside", str(model)]
    with serving("the cat", *options, lines=5) as (_, lines):
        assert lines[2].startswith("Loading ")
        assert lines[3:] == ["tiny runs on cpu, float32\n"] * 2
        base, token = lines[0].split()[-1].split("?token=")
        facts = json.loads(get(f"{base}model.json", token))
        assert (facts["loading"], facts["beside"], facts["text"]) == (False, "tiny", "the cat")
        question = {"page": "one", "input": {"text": "the cat"}, "changes": [], "looking": {}}
        ids = []
        for second in (False, True):
            answer = get(f"{base}ask", token, asks=question | {"second": second})
            ids += re.findall(r'"id": ?"([\w-]+)"', answer)[:1]
        both = {"page": "one", "a": ids[0], "b": ids[1], "looking": {}}
        assert '"moved"' in get(f"{base}compare", token, asks=both)


def test_several_words_without_a_model_are_what_the_demo_model_reads(monkeypatch, capsys):
    served = []
    named = "headscope.live.serving.serve_named"
    monkeypatch.setattr(named, lambda model, *_, **__: served.append(model))
    assert run(["serve", "The cat sat.", "--port", "0"]) == 0
    ((model, text),) = [(each.name, each.text) for each in served]
    assert (model, text) == (None, "The cat sat.")
    assert run(["serve", "gone.safetensors", "--port", "0"]) == 1
    assert run(["serve", "gone", "--port", "0"]) == 1
    assert capsys.readouterr().err.count(" does not exist") == 2
    assert len(served) == 1
