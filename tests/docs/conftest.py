"""The folder that a reader of the docs sits in: small models and files under the names that the
pages use.
"""

import json
import shutil
import wave
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, partialmethod
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib.backends import _backend_pdf_ps

import headscope as hs
import headscope.testing
from headscope.capturing import _hub
from headscope.corpus._engines import this_process
from headscope.patterns import Tally
from headscope.studies.probe._probe import TRAININGS
from headscope.testing import cipher_pairs, cipher_translator, tiny_model, tiny_tokenizer
from headscope.views import _html
from headscope.views.figures import Figure

from ..processors import square_pictures, tiny_chat_llava, tiny_clip, tiny_videos, with_head

TEXTS = """The rabbit quickly hopped across the road.
At the store, I bought fresh strawberries.
She said that she would come, but she did not.
"""
ON_THE_REAL_MODEL = ("README", "index", "literature")
"""Pages that are run on the demo model itself: the first ones of a reader, and the one that prints
its numbers. All others run on a model of as many layers and heads that is a tenth as wide.
"""
LONG = {"max_position_embeddings": 256}
"""A letter is a token of the tiny tokenizer."""
OWN_TASK = """
def task(model, tokenizer):
    inputs = tokenizer("a cat", return_tensors="pt")
    return lambda model: model(**inputs).last_hidden_state[0, :, 0]
"""
OLD_NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "first",
            "metadata": {},
            "outputs": [],
            "source": "from bertviz import head_view\nhead_view(attention, tokens)",
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
SUBJECTS = ("cat", "dog", "child", "teacher", "doctor", "rabbit")
VERBS = ("saw", "followed", "found", "liked")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of models by the names that the docs call them by, hub names too: a folder of that
    name comes first.
    """
    folder = tmp_path_factory.mktemp("models")
    narrow = _narrow_minilm()
    llama = tiny_model("llama", writes=True, num_hidden_layers=4, **LONG)
    gpt2 = tiny_model("gpt2", writes=True, n_positions=256)
    clip, llava, translator = tiny_clip(), tiny_chat_llava(), _translator()
    made = {
        "my-model": (llama, _talking()),
        "path/to/a/llama": (llama, tiny_tokenizer()),
        "path/to/a/model": (tiny_model("bert"), tiny_tokenizer()),
        "path/to/a/classifier": (
            with_head("SequenceClassification", num_labels=2, **LONG),
            tiny_tokenizer(),
        ),
        "path/to/a/translator": translator,
        "path/to/a/clip": clip,
        "path/to/a/llava": llava,
        "path/to/a/vit": (tiny_model("vit", num_hidden_layers=3), _rectangular_pictures()),
        "path/to/induction-2l-attn-only": (
            tiny_model("gpt2", writes=True, n_positions=256, n_layer=2, vocab_size=65),
            _numbered_words(),
        ),
        "bert-base-uncased": (with_head("MaskedLM", **LONG), _masking_tokenizer()),
        "facebook/detr-resnet-50": _tiny_detr(),
        "facebook/dinov2-small": (tiny_model("dinov2"), square_pictures()),
        "facebook/wav2vec2-base": (tiny_model("wav2vec2"), _sounds()),
        "google-bert/bert-base-uncased": narrow,
        "Helsinki-NLP/opus-mt-de-en": translator,
        "MCG-NJU/videomae-base": (tiny_model("videomae"), tiny_videos()),
        "openai-community/gpt2": (gpt2, tiny_tokenizer()),
        "openai/clip-vit-base-patch32": clip,
        "sentence-transformers/all-MiniLM-L6-v2": narrow,
    }
    for name, parts in made.items():
        for part in parts:
            part.save_pretrained(folder / name)
    return folder


def _talking():
    """A tokenizer with a chat template."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for each in messages %}[CLS]{{ each['role'] }}, {{ each['content'] }}[SEP]{% endfor %}"
        "{% if add_generation_prompt %}[CLS]assistant,{% endif %}"
    )
    return tokenizer


def _translator():
    """A translator of the cipher that knows the words of the page on alignment, too."""
    from tokenizers import AddedToken

    model, tokenizer, _ = cipher_translator(steps=2)
    words = ("das", "alte", "Haus", "the", "old", "house")
    tokenizer.add_tokens([AddedToken(word, single_word=True) for word in words])
    model.resize_token_embeddings(len(tokenizer))
    return model, tokenizer


def _numbered_words():
    """A tokenizer of 64 words that reads any other as the token that begins a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {**{f"t{number}": number for number in range(64)}, "<s>": 64}
    backend = Tokenizer(models.WordLevel(words, "<s>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")


def _narrow_minilm():
    """The demo model with its tokenizer, layers and heads, a tenth as wide, with random weights."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    real = _hub.demo_model()
    config = AutoConfig.from_pretrained(real, hidden_size=48, intermediate_size=60)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModel.from_config(config)
    return model.eval(), AutoTokenizer.from_pretrained(real)


def _masking_tokenizer():
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = "[UNK]"
    return tokenizer


def _rectangular_pictures():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": 12, "width": 20})


def _tiny_detr():
    import torch
    import transformers
    from transformers.models.detr.image_processing_pil_detr import DetrImageProcessorPil

    backbone = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8] * 4,
        depths=[1] * 4,
        layer_type="basic",
        out_features=["stage4"],
    )
    layers = {
        f"{side}_{what}": size
        for side in ("encoder", "decoder")
        for what, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 40))
    }
    config = transformers.DetrConfig(
        backbone_config=backbone, num_queries=5, num_labels=3, d_model=32, **layers
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.DetrForObjectDetection(config)
    return model.eval(), DetrImageProcessorPil(size={"shortest_edge": 96, "longest_edge": 160})


def _sounds():
    from transformers import Wav2Vec2FeatureExtractor

    return Wav2Vec2FeatureExtractor(sampling_rate=8000)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder of the data that readers bring, as the pages call it."""
    folder = tmp_path_factory.mktemp("files")
    lines = TEXTS.splitlines()
    _write(folder / "texts.txt", TEXTS)
    _write(folder / "prompts.txt", "Once upon a time\nThe cat sat\n")
    _write_rows(
        folder / "texts.jsonl",
        [{"text": line, "label": str(at % 2)} for at, line in enumerate(lines)],
    )
    _write(
        folder / "pairs.csv",
        "text,text_b\n" + "".join(f'"{one}","{two}"\n' for one, two in pairwise(lines)),
    )
    likeness = [
        {"sentence1": one, "sentence2": two, "score": at % 6}
        for at, (one, two) in enumerate(pairwise(lines))
    ]
    _write_rows(folder / "pairs.jsonl", likeness)
    rows = "".join(f"{line}\t{line}\t{at % 2}\n" for at, line in enumerate(lines))
    _write(folder / "rte.tsv", "sentence1\tsentence2\tlabel\n" + rows)
    _write(folder / "own.py", OWN_TASK)
    for name, line in zip("abc", lines, strict=False):
        _write(folder / f"{name}.txt", line)
    talk = [{"role": "user", "content": each} for each in ("The cat sat. It ran.", lines[1])]
    talk.insert(1, {"role": "assistant", "content": lines[2]})
    _write(folder / "chat.json", json.dumps(talk))
    for name in ("a.tsv", "b.tsv"):
        _write(folder / name, "sentence1\tsentence2\tlabel\n" + rows)
    intents = "".join(f'"{line}",{at % 2}\n' for at, line in enumerate(lines))
    for name in ("train.csv", "test.csv"):
        _write(folder / name, "text,label\n" + intents)
    _write(folder / "old.ipynb", json.dumps(OLD_NOTEBOOK))
    # probes of relations learn from those that come 50 times
    for part, sentences in (("dev", 13), ("train", 80), ("test", 8)):
        _write(folder / f"en_ewt-ud-{part}.conllu", _treebank(part, sentences))
    record = hs.capture(*_narrow_minilm(), text=lines[0], text_pair=lines[2])
    hs.save(record, folder / "run.safetensors")
    tally = Tally()
    tally.update("one", record)
    tally.save(folder / "tally.safetensors")
    _write_translations(folder)
    _write_coreference(folder)
    _write_media(folder)
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_rows(path: Path, rows: list) -> None:
    _write(path, "".join(json.dumps(row) + "\n" for row in rows))


def _treebank(part: str, count: int) -> str:
    """Sentences such as "The old cat saw a dog .", as CoNLL-U."""
    sentences = []
    for at in range(count):
        subject, verb, object_ = SUBJECTS[at % 6], VERBS[at % 4], SUBJECTS[(at + at // 6 + 1) % 6]
        rows = [("The", "DET", 3 if at % 2 else 2, "det")]
        if at % 2:
            rows.append(("old", "ADJ", 3, "amod"))
        noun = len(rows) + 1
        rows.append((subject, "NOUN", noun + 1, "nsubj"))
        rows.append((verb, "VERB", 0, "root"))
        rows.append(("a", "DET", noun + 3, "det"))
        rows.append((object_, "NOUN", noun + 1, "obj"))
        rows.append((".", "PUNCT", noun + 1, "punct"))
        lines = [f"# sent_id = {part}-{at}", "# text = " + " ".join(word for word, *_ in rows)]
        lines += [
            f"{number}\t{word}\t{word.lower()}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
            for number, (word, tag, head, relation) in enumerate(rows, 1)
        ]
        sentences.append("\n".join(lines) + "\n\n")
    return "".join(sentences)


def _write_translations(folder: Path) -> None:
    pairs = cipher_pairs(8, seed=4)
    lines = [" ".join(f"{first}-{second}" for first, second in pair.sure) for pair in pairs]
    rows = [
        {"source": pair.source, "target": pair.target, "links": links}
        for pair, links in zip(pairs, lines, strict=True)
    ]
    _write_rows(folder / "a.jsonl", rows[:4])
    _write_rows(folder / "b.jsonl", rows[4:])
    _write(
        folder / "pairs.txt",
        "".join(f"{row['source']} ||| {row['target']} ||| {row['links']}\n" for row in rows),
    )


def _write_coreference(folder: Path) -> None:
    for number, (name, pronoun) in enumerate(
        (("Ann", "She"), ("Tom", "He"), ("Eve", "She"), ("Max", "He"))
    ):
        rows = [
            "MENTION\tT0\t0\t0\t0\t0\tname\tPER\tPROP",
            "MENTION\tT1\t0\t2\t0\t3\ta friend\tPER\tNOM",
            "MENTION\tT2\t1\t0\t1\t0\tpronoun\tPER\tPRON",
            "COREF\tT0\tfirst",
            "COREF\tT2\tfirst",
        ]
        _write(folder / f"litbank/coref/tsv/book{number}.ann", "\n".join(rows) + "\n")
        _write(
            folder / f"litbank/coref/tsv/book{number}.txt",
            f"{name} met a friend .\n{pronoun} left early .\n",
        )
    text = "Ann met Sue because she was late."
    fields = "ID Text Pronoun Pronoun-offset A A-offset A-coref B B-offset B-coref URL".split()
    answers = (("TRUE", "FALSE"), ("FALSE", "TRUE"))
    rows = [
        [f"development-{at}", text, "she", "20", "Ann", "0", first, "Sue", "8", second, "u"]
        for at, (first, second) in enumerate(answers)
    ]
    _write(
        folder / "gap-development.tsv", "".join("\t".join(row) + "\n" for row in [fields, *rows])
    )
    pair = (
        "[The clerk] met the driver because [he] was early.\nThe clerk met [the driver] because "
        "[he] was late.\n"
    )
    _write(
        folder / "pro_stereotyped_type1.dev.txt",
        "".join(f"{at} {line}\n" for at, line in enumerate(pair.splitlines(), 1)),
    )
    _write(
        folder / "all_sentences.tsv",
        "sentid\tsentence\n"
        "clerk.customer.0.male.txt\tThe clerk told the customer that he could pay.\n"
        "clerk.customer.1.male.txt\tThe clerk told the customer that he should pay.\n"
        "nurse.patient.0.male.txt\tThe nurse told the patient that he would come.\n",
    )


def _write_media(folder: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    for name in ("cat.png", "cat.jpg", "dog.jpg", "digit.png"):
        Image.fromarray(pixels).save(folder / name)
    frames = [Image.fromarray(np.roll(pixels, 8 * frame, axis=1)) for frame in range(6)]
    frames[0].save(folder / "clip.gif", save_all=True, append_images=frames[1:])
    with wave.open(str(folder / "speech.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.sin(np.arange(800) / 5) * 9000).astype("<i2").tobytes())


def _few_pairs(count, **options):
    """Sentences of the cipher: to align a hundred takes as long as all else on the page."""
    return cipher_pairs(min(count, 16), **options)


def _coarse(figure, to_bytes, kind, *, dpi=300):
    """A figure of a few dots: to draw and pack those of print takes most of a page's time."""
    assert 30 <= dpi <= 2400
    return to_bytes(figure, kind, dpi=30)


@contextmanager
def _whole_font(path, glyphs):
    """A font with all its glyphs: to leave out those that a figure has not takes most of the time
    of a PDF, and tests/views/figures looks at what is left.
    """
    with TTFont(path) as font:
        yield SimpleNamespace(font=font, glyph_index_map={glyph: glyph for glyph in glyphs})


@contextmanager
def _cluster_of_this_process(address, workers=None):
    """In place of a Dask cluster, which tests/corpus/test_dask.py has."""
    assert address == "local" or address.startswith("tcp://")
    yield this_process().make()


class Interrupted:
    """A server that ends at once, as by Ctrl-C; tests/cli/test_serve.py has real ones."""

    def run(self, sockets):
        assert sockets[0].getsockname()[0] == "127.0.0.1"


@pytest.fixture
def no_type_checks():
    """Types are checked as the package runs in all other tests; pages take several times as long
    with it.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def cheap(no_type_checks, counted_once, monkeypatch):
    """What takes long on every page and is looked at elsewhere is done roughly, or once."""
    monkeypatch.setattr(_backend_pdf_ps, "get_glyphs_subset", _whole_font)
    monkeypatch.setattr(Figure, "to_bytes", partialmethod(_coarse, Figure.to_bytes))


@pytest.fixture
def desk(request, cheap, models, files, tmp_path, monkeypatch):
    """The folder that blocks run in: new for each page, with all models and files in it."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    for name in models.iterdir():
        (tmp_path / name.name).symlink_to(name, target_is_directory=True)
    (tmp_path / "viewer").mkdir()  # where the gallery saves its pages
    monkeypatch.chdir(tmp_path)
    if request.node.callspec.params["page"] not in ON_THE_REAL_MODEL:
        narrow = models / "sentence-transformers" / "all-MiniLM-L6-v2"
        monkeypatch.setattr(_hub, "demo_model", lambda: narrow)
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"viewer('{name}')")
    # taught for two steps, not 800: what is printed then is not looked at
    monkeypatch.setattr(headscope.testing, "cipher_translator", partial(cipher_translator, steps=2))
    monkeypatch.setattr(headscope.testing, "cipher_pairs", _few_pairs)
    for name, how in TRAININGS.items():
        monkeypatch.setitem(TRAININGS, name, replace(how, epochs=2))
    # Each worker loads torch for seconds; tests/corpus and tests/studies have real ones, and the
    # same bits come out.
    monkeypatch.setattr("headscope.corpus._run.pool", lambda workers: this_process())
    monkeypatch.setattr("headscope.corpus.dask_cluster", _cluster_of_this_process)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setattr("headscope.views.listening.quiet_server", lambda application: Interrupted())
    monkeypatch.setattr("headscope.live.serving.quiet_server", lambda application: Interrupted())
    monkeypatch.setattr("headscope.live.serving._load", lambda *_: None)
    return tmp_path
