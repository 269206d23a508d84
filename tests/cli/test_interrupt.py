"""Ctrl-C and SIGTERM, sent to real processes: one line, the exit code that shells expect, and
nothing half written.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")

# Where the tests run in the background, shells have them ignore SIGINT, and their children inherit
# that.
HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

STARTED = "from headscope.cli import main; print('started', flush=True); main()"

WAITING = """
import time
from headscope.cli import main
from headscope.cli._main import app

@app.command
def wait():
    try:
        print("started", flush=True)
        # A signal that comes just before a sleep begins does not end it, so no sleep is long.
        for _ in range(1000):
            time.sleep(0.1)
    finally:
        print("cleaned up", flush=True)

main(["wait"])
"""


ENDS = {"SIGINT": (130, "headscope: interrupted\n"), "SIGTERM": (143, "headscope: terminated\n")}


def ended_by(name, process, *, after=0.0):
    """The exit code and what was written, of a process that gets a signal once it has started."""
    assert process.stdout.readline() == "started\n"
    time.sleep(after)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def process_of(code, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", HEEDING + code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.parametrize("name", ENDS)
def test_a_command_that_is_stopped_cleans_up_and_says_one_line(name):
    code, line = ENDS[name]
    assert ended_by(name, process_of(WAITING)) == (code, "cleaned up\n", line)


@pytest.mark.parametrize(
    ("name", "after"), [("SIGINT", 1.5), ("SIGTERM", 0.1)], ids=["while it loads", "at once"]
)
def test_a_study_that_is_stopped_leaves_no_file(name, after, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat on the mat\n" * 400, encoding="utf-8")
    asked = ["heads", "--texts", "texts.txt", "--out", "heads.csv"]
    code, line = ENDS[name]
    assert ended_by(name, process_of(STARTED, *asked, cwd=tmp_path), after=after) == (
        code,
        "",
        line,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]


BUSY = """
import threading, time
threading.Thread(target=lambda: time.sleep(60)).start()  # a pass of the model that nobody stops
"""


@pytest.mark.parametrize("began", ["Listening on", " runs on "])
def test_a_live_server_ends_within_three_seconds(began):
    with process_of(BUSY + "from headscope.cli import main; main()", "serve") as process:
        assert any(began in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=3) == 130
        assert process.stderr.read() == "headscope: interrupted\n"


def test_output_that_nobody_reads_any_more_is_no_fault_of_ours(tmp_path):
    """As ``headscope compare ... | head`` closes it."""
    import headscope as hs
    from headscope.testing import random_record

    hs.save(random_record(), tmp_path / "run.safetensors")
    script = (
        "import sys; from headscope.cli import main\n"
        f"main(['check', *[{str(tmp_path / 'run.safetensors')!r}] * 3])"
    )
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-u", "-c", script],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")
