import pytest
from safetensors.numpy import load_file

import headscope as hs
from headscope.cli import run
from headscope.patterns import Tally
from headscope.studies import AlignmentStudy, Relations
from headscope.testing import random_record


def kept(path):
    tally = Tally()
    for number in range(2):
        tally.update(str(number), random_record(seed=number))
    return tally.save(path)


@pytest.fixture
def files(here):
    relations = Relations()
    relations.sums.facts["heads"] = ((0, 0),)
    return {
        "run.safetensors": hs.save(random_record(), here / "run.safetensors"),
        "tally.safetensors": kept(here / "tally.safetensors"),
        "relations.safetensors": relations.save(here / "relations.safetensors"),
    }


def test_whole_files_pass(files, capsys):
    assert run(["check", *files]) == 0
    said = capsys.readouterr().out.splitlines()
    arrays = len(load_file("tally.safetensors"))
    assert said == [
        "run.safetensors is whole: 2 arrays are as their checksums say; random: cross 2 layers x "
        "3 heads, 5 x 7 tokens",
        f"tally.safetensors is whole: {arrays} arrays are as their checksums say; <Heads: 6 heads, "
        "2 texts, 0 labels>",
        "relations.safetensors is whole: 2 arrays are as their checksums say; <Relations of 0 "
        "sentences>",
    ]


@pytest.mark.parametrize("name", ["run.safetensors", "tally.safetensors"])
def test_one_flipped_bit_is_enough(name, files, capsys):
    raw = bytearray(files[name].read_bytes())
    raw[-20 if name.startswith("run") else 2000] ^= 1
    files[name].write_bytes(raw)
    assert run(["check", name]) == 1
    assert f"headscope: {name} is " in capsys.readouterr().err
    assert run(["check", *files]) == 1
    streams = capsys.readouterr()
    assert streams.out.count(" is whole: ") == 2
    assert streams.err == "headscope: 1 of 3 files are damaged or cannot be read\n"


def test_what_is_nothing_of_ours_is_said(here, capsys):
    assert run(["check"]) == 1
    assert "Expected records or saved results to check" in capsys.readouterr().err
    assert run(["check", "gone.safetensors"]) == 1
    assert "gone.safetensors does not exist" in capsys.readouterr().err
    assert run(["check", "poem.txt"]) == 1
    assert "poem.txt is no record or result (.safetensors)" in capsys.readouterr().err
    (here / "a.safetensors").write_bytes(b"PK" * 99)
    assert run(["check", "a.safetensors"]) == 1
    assert "a.safetensors is cut or no .safetensors file" in capsys.readouterr().err
    AlignmentStudy().save("empty.safetensors")
    assert run(["check", "empty.safetensors"]) == 0
