"""Tiny models and records with random weights: made in milliseconds, no download."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from headscope.errors import ModelError, RecordError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens

if TYPE_CHECKING:
    from headscope.studies import AlignedPair


Sizes = dict[str, Any]
VOCABULARY = 64
_WRITTEN = json.loads(Path(__file__).with_name("architectures.json").read_text(encoding="utf-8"))
SHARED: Sizes = _WRITTEN.pop("shared")
"""Sizes of several architectures, by name: patches are three rows of five (three where an
architecture knows no others), frames of a video four; rotary positions need an even head size.
"""


def _sizes_of(written: Any) -> Any:
    """A configuration: of a list that of its parts, which are sizes or names of shared ones."""
    if isinstance(written, dict):
        return {name: _sizes_of(value) for name, value in written.items()}
    listed = written if isinstance(written, list) else []
    if not listed or not all(isinstance(part, dict) or str(part) in SHARED for part in listed):
        return written
    sizes: Sizes = {}
    for part in listed:
        sizes |= _sizes_of(SHARED[part] if isinstance(part, str) else part)
    return sizes


KINDS: dict[str, dict[str, Sizes]] = _sizes_of(_WRITTEN)
"""The architectures by what they read."""
ARCHITECTURES: dict[str, Sizes] = {
    name: sizes for kind in KINDS.values() for name, sizes in kind.items()
}
"""By model type (and variant), what the configuration says: sizes that differ, so that no mixed-up
axis goes unseen.
"""
SHARPNESS = 1.6
UNSUITED = (
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What models raise when they are given what they cannot read, or a configuration that they do not
know.
"""


def tiny_model(name: str, *, seed: int = 0, writes: bool = False, **changes: Any) -> Any:
    """A transformers model in evaluation mode with random weights.

    Args:
        name: one of `ARCHITECTURES`, such as ``"bert"`` or ``"falcon (alibi)"``.
        seed: of the weights; the caller's random state is left as it was.
        writes: with the head that predicts tokens, which encoder-decoders have anyway.
        **changes: of its configuration.

    Raises:
        ModelError: where there is no such architecture, or the transformers that is installed is
            too old for it.
    """
    import torch
    import transformers
    from transformers import AutoConfig

    from headscope.capturing import loader_of

    if name not in ARCHITECTURES:
        raise ModelError(f"There is no tiny model {name!r}; there are {', '.join(ARCHITECTURES)}")
    model_type = name.partition(" (")[0]
    if model_type not in transformers.CONFIG_MAPPING:
        raise ModelError(
            f"transformers {transformers.__version__} has no {model_type!r}; a newer one has"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            config = AutoConfig.for_model(
                model_type, **{"vocab_size": VOCABULARY} | ARCHITECTURES[name] | changes
            )
            model = loader_of(config, writes=writes).from_config(config).eval()
        except UNSUITED as error:
            raise ModelError(
                f"transformers {transformers.__version__} makes no tiny {name} model: {error}"
            ) from error
        sharpen(model)
    return model


def sharpen(model: Any) -> None:
    """Draw larger weights than those a training starts from, under which all attention is nearly
    even.
    """
    import torch

    # Many convolutions on top of each other, whose features would grow beyond all numbers.
    has_backbone = getattr(model.config, "backbone_config", None) is not None
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            # By the width of the input, so that outputs are about as large whatever the layer.
            if parameter.ndim >= 2 and "embed" not in name.lower():
                inputs = parameter.shape[1:].numel() if has_backbone else parameter.shape[-1]
                parameter.normal_(std=SHARPNESS / max(1, inputs) ** 0.5)
            elif name.endswith(("bias", "sinks")):
                parameter.normal_(std=0.3)


def tiny_tokenizer() -> Any:
    """A word-piece tokenizer over the letters of English: each word becomes its first letter and
    ``##`` pieces.

    ``[CLS] a [SEP]`` and ``[CLS] a [SEP] b [SEP]`` around texts and pairs; offsets and word numbers
    as usual.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz"
    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", ".", ","]
    pieces = [*marks, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    # Capitals are no pieces of their own, and would all be [UNK].
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def random_weights(
    rng: np.random.Generator, shape: Sequence[int], sharpness: float = 2.0
) -> Float[np.ndarray, "..."]:
    """Softmax of normal scores along the last axis, float32."""
    raised = np.exp(sharpness * rng.standard_normal(tuple(shape)))
    return (raised / raised.sum(axis=-1, keepdims=True)).astype(np.float32)


def random_record(
    *, layers: int = 2, heads: int = 3, queries: int = 5, keys: int = 7, seed: int = 0
) -> Record:
    """A cross-attention record whose axes all have their own size, so that no mixed-up axis goes
    unseen.
    """
    rng = np.random.default_rng(seed)
    sides: dict[str, Any] = {}
    for side, count in (("query", queries), ("key", keys)):
        sides[side] = Tokens(pieces=tuple(f"{side[0]}{number}" for number in range(count)))
    weights = [random_weights(rng, (heads, queries, keys)) for _ in range(layers)]
    made = tuple(Layer(layer=number, weights=each) for number, each in enumerate(weights))
    stack = Stack(name="cross", layers=made, **sides)
    return Record(stacks={"cross": stack}, model=ModelFacts(name="random"))


Order = Literal["swap", "reverse"]
SYLLABLES = tuple(consonant + vowel for consonant in "bdgkmnpst" for vowel in "aiou")
SOURCE = (
    *SYLLABLES[:12],
    *(first + last for first, last in zip(SYLLABLES[12:18], SYLLABLES[24:30], strict=True)),
)
"""Twelve words of one piece and six of two."""
LENGTHS = (3, 8)
"""Fewest words of a sentence, and one more than the most."""
MARKS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
BATCH, RATE, WARMING = 32, 3e-3, 50


def cipher_pairs(count: int, *, order: Order = "swap", seed: int = 0) -> list[AlignedPair]:
    """Sentences of random words with their translation, and which word became which.

    Target words are in capitals, one for each source word (of one piece or two, whatever the source
    word has).

    Args:
        count: how many.
        order: neighbours swapped two by two, or the sentence reversed.
        seed: of the words drawn.

    Raises:
        RecordError: where there is no such order.

    Example:
        >>> pair = cipher_pairs(1)[0]
        >>> len(pair.sure) == len(pair.source.split()) == len(pair.target.split())
        True
    """
    if order not in get_args(Order):
        raise RecordError(
            f"order is {order!r}; it may be {' or '.join(map(repr, get_args(Order)))}"
        )
    rng = np.random.default_rng(seed)
    return [_pair(rng, order) for _ in range(count)]


def cipher_tokenizer() -> Any:
    """A word-piece tokenizer of the cipher: a piece for each syllable, ``[SEP]`` at the end of a
    text.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    starts = [*SYLLABLES, *(syllable.upper() for syllable in SYLLABLES)]
    vocabulary = {
        piece: number
        for number, piece in enumerate([*MARKS, *starts, *(f"##{each}" for each in starts)])
    }
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    end = [("[SEP]", vocabulary["[SEP]"])]
    backend.post_processor = processors.TemplateProcessing(single="$A [SEP]", special_tokens=end)
    names = dict(zip(("pad_token", "cls_token", "eos_token", "unk_token"), MARKS, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def cipher_translator(
    *, steps: int = 800, order: Order = "swap", seed: int = 0
) -> tuple[Any, Any, float]:
    """A small BART (one encoder layer, two decoder layers of four heads, width 48) that was taught
    the cipher.

    Args:
        steps: of training, 32 sentences each; 800 take about 20 s of processor time.
        order: see `cipher_pairs`.
        seed: of weights and sentences; the caller's random state is left as it was.

    Returns:
        The model, its tokenizer, and the mean loss of a token over the last ten steps, in nats.
    """
    import torch

    tokenizer = cipher_tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _model(len(tokenizer))
        optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
        # Up over the first steps and down to 0 at the last: without a warm-up a transformer may not
        # learn at all.
        rising = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min(1, (step + 1) / WARMING) * (1 - step / steps)
        )
        losses = []
        for step in range(steps):
            # New sentences at every step and for every seed: nothing can be learnt by heart.
            pairs = cipher_pairs(BATCH, order=order, seed=1 + seed * steps + step)
            loss = _loss(model, tokenizer, pairs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rising.step()
            losses.append(loss.item())
    return model.eval(), tokenizer, float(np.mean(losses[-10:]))


def _pair(rng: np.random.Generator, order: Order) -> AlignedPair:
    # Studies take longest of all to import, and most who want a tiny model need none of them.
    from headscope.studies import AlignedPair

    # The translation of words is always the same, whatever the seed of the sentences.
    code = np.random.default_rng(len(SOURCE)).permutation(len(SOURCE))
    words = rng.integers(len(SOURCE), size=rng.integers(*LENGTHS))
    ranks = list(range(len(words)))
    if order == "reverse":
        ranks.reverse()
    else:
        for first in range(0, len(words) - 1, 2):
            ranks[first : first + 2] = [first + 1, first]
    return AlignedPair(
        source=" ".join(SOURCE[word] for word in words),
        target=" ".join(SOURCE[code[words[rank]]].upper() for rank in ranks),
        sure=frozenset((rank, number) for number, rank in enumerate(ranks)),
    )


def _model(vocabulary: int) -> Any:
    from transformers import AutoConfig, BartForConditionalGeneration

    sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in SIDE.items()}
    dropout = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "decoder_start_token_id": 1, "eos_token_id": 2}
    sizes = sides | {
        "encoder_layers": 1,
        "d_model": 48,
        "vocab_size": vocabulary,
        "max_position_embeddings": 32,
    }
    config: Any = AutoConfig.for_model(
        "bart", **sizes, **dropout, **ids, forced_eos_token_id=2, init_std=0.1
    )
    return BartForConditionalGeneration(config)


SIDE = {"layers": 2, "attention_heads": 4, "ffn_dim": 96}


def _loss(model: Any, tokenizer: Any, pairs: list[AlignedPair]) -> Any:
    import torch

    source = tokenizer([pair.source for pair in pairs], padding=True, return_tensors="pt")
    labels = tokenizer([pair.target for pair in pairs], padding=True, return_tensors="pt")[
        "input_ids"
    ]
    # Padding must not be learnt: cross_entropy passes over labels of -100.
    padding = labels == model.config.pad_token_id
    # Teacher forcing: the decoder reads the start token and all labels but the last.
    read = torch.cat(
        [torch.full_like(labels[:, :1], model.config.decoder_start_token_id), labels[:, :-1]], dim=1
    )
    logits = model(
        input_ids=source["input_ids"],
        attention_mask=source["attention_mask"],
        decoder_input_ids=read,
    ).logits
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), labels.masked_fill(padding, -100)
    )
