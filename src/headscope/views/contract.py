"""The contract between Python and the viewer: what a page holds besides arrays, as JSON.

Declared here once, and what a page shows in `headscope.views.options`; ``frontend/contract``
holds the JSON schema that ``make contract`` writes of it (a test fails when they drift), and the
build of the front end makes its TypeScript types of that. Arrays are not part of the JSON: each
`PageArray` names a chunk of gzipped bytes that travels beside it.

Format 2. Additions keep the number, changes of meaning raise it.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from headscope.views.options import KindName, PageSelection
from headscope.views.why_contract import WhyPicture

PAGE_FORMAT = 2

Dtype = Literal["uint8", "float16", "float32", "int32"]


class PageArray(TypedDict):
    """An array that travels as bytes, little-endian, in C order, gzipped."""

    chunk: str
    """Name of the chunk that holds the bytes."""
    axes: list[str]
    """Axis names, outermost first, such as head, query, key."""
    shape: list[int]
    dtype: Dtype
    encoding: Literal["plain", "sqrt", "signed"]
    """How a stored number b becomes a value: plain means b itself, sqrt means (b / 255) ** 2,
    signed means c * |c| for c = (b - 128) / 127.
    """
    most: NotRequired[float]
    """What the value is then multiplied by; 1 where it is absent."""
    split: NotRequired[int]
    """How many outer axes have a chunk for each entry: CHUNK/0, CHUNK/1 ... of one, CHUNK/0/0 ...
    of two.
    """


class PageTokens(TypedDict):
    """The tokens of one side of a stack; every list has one entry for each token."""

    pieces: list[str]
    """As the tokenizer names them."""
    labels: list[str]
    """As a reader should see them: without the tokenizer's marks for spaces and continuation."""
    continues: list[bool]
    """True where the token continues the word of the token before."""
    words: NotRequired[list[str]]
    """The whole words, in order, each of a token and those that continue it; absent where every
    token is a word.
    """
    special: list[bool]
    """True for [CLS], [SEP], <s> and their like."""
    segments: list[int]
    """0 for the first text and 1 for the second of a pair."""
    count: NotRequired[int]
    """How many tokens the text has where each of these stands for a group of them."""
    written: NotRequired[int]
    """The first token that the model wrote itself; all before it were given."""
    areas: NotRequired[list[str]]
    """Row and column of each patch of a picture, from 1, as CSS's grid-area has it: ``2/5``; empty
    for other tokens.
    """
    runs: NotRequired[list[list[int]]]
    """First and stop of the tokens in one picture, or in none; a third number is that of the
    picture, from 1. Beside ``areas``.
    """
    grids: NotRequired[list[list[int]]]
    """Rows and columns of the patches of each picture. Beside ``areas``."""
    frames: NotRequired[list[str]]
    """What part of a video each picture stands for, such as ``frames 2-3``; empty for others. Where
    there is a video.
    """


class PageScores(TypedDict):
    """All that scores and weights are recomputed from.

    ``weights = softmax(soft_cap(queries . keys * scale) + bias)`` over the visible keys and the
    sink.
    """

    queries: PageArray
    """Axes head, query, feature; positions are applied."""
    keys: PageArray
    """Axes kv_head, key, feature; positions are applied. Heads share them evenly, in order."""
    scale: float
    soft_cap: float | None
    """None for none; else scores become soft_cap * tanh(score / soft_cap) before the bias is
    added.
    """
    bias: PageArray | None
    """Axes head, query, key, or head, offset where only key - query counts: offset 0 is the last
    query's first key. One head stands for all.
    """
    sinks: list[float] | None
    """For each head one more logit of the softmax that belongs to no token."""
    error: float
    """Largest absolute difference between a weight recomputed from these arrays and the exact
    one.
    """


class PageRotary(TypedDict):
    """How positions turned the queries and keys of a layer."""

    frequencies: list[float]
    """Radians by which one token turns each pair of features."""
    style: Literal["halves", "neighbours"]
    """neighbours where features 2i and 2i + 1 are a pair, halves where i and i + len(frequencies)
    are.
    """
    start: int
    """The first feature that is turned; pairs are counted from it."""


class PageLayer(TypedDict):
    """One layer of a stack."""

    layer: int
    """Number of the layer in the model, from 0."""
    later: NotRequired[bool]
    """True where the layer is prepared when it is asked for: the chunk layer/STACK/LAYER then is
    all of this as JSON, and row-QUANTITY/STACK/LAYER/QUERY what a query has with every key, axes
    head, key, in single precision.
    """
    has: NotRequired[list[str]]
    """Of a layer that is prepared later: the quantities that it will have, beside weights."""
    kind: str
    """full, causal, sliding ...: what a query may look at."""
    held: NotRequired[list[int]]
    """Positions among the page's heads of those that were captured, where others were not: of these
    everything is 0.
    """
    kv_heads: int
    """Fewer than heads where heads share their keys and values."""
    visible: PageArray | None
    """Axes run, bound: a query, its first visible key and the end; None where every key is visible
    to all.
    """
    weights: PageArray | None
    """Axes head, query, key; None where weights are recomputed from the scores."""
    scores: PageScores | None
    """None where the record or the page has no queries and keys."""
    rotary: NotRequired[PageRotary]
    """Where positions turned queries and keys."""
    error: float
    """Largest absolute difference between a weight as this page has it and the exact one; over some
    of the queries of a long text, and then ``checked`` says so.
    """
    row_sums: Literal["one", "less"]
    """less where part of a row's mass went to a learned sink that is no token, or was not kept."""
    not_kept: NotRequired[float]
    """Mean share of a row's weight that was cut before headscope saw it, where rows were cut."""
    value_norms: NotRequired[PageArray]
    """Axes head, key: the length of what each key's value adds to the output when it has all of a
    head's weight. From it the page works out the quantity contribution: weight times value norm.
    """
    quantities: NotRequired[dict[str, PageArray]]
    """Further quantities of this layer by name; axes head, query, key, or query, key for all heads
    together.
    """


class PageAbsent(TypedDict):
    """A layer of the model that has no attention to show."""

    layer: int
    why: str
    """What it has instead of attention, or why its attention is missing."""


class PageMoved(TypedDict):
    """How far heads are from what they are compared with; every list has a row for each layer of
    the stack.
    """

    label: str
    """What the values are, with their unit."""
    spread: str
    """The baseline that a value must exceed to count."""
    values: list[list[float | None]]
    """None for heads that do not exist, and for those that were changed on purpose."""
    within: list[list[bool]]
    """True where the value is no larger than the spread."""
    changed: list[list[bool]]
    """True for heads that were changed on purpose."""


class PageKinds(TypedDict):
    """The kind of each head on the shown text: a description of one text, not a label."""

    kinds: list[KindName]
    """All kinds; a head's ``kind`` is an index into them."""
    columns: list[str]
    """Names of the numbers of a head: its ten numbers, the positions and links that a sentence
    names, kind and score.
    """
    values: PageArray
    """Axes layer, head, column; NaN where a number has no meaning."""
    causal: bool
    """True where a query sees no later key, so that the first token stands for special ones."""


class PageSentences(TypedDict):
    """The sentences of a long text, or of two: the first token of each, or of a few together."""

    query: list[int]
    key: list[int]


class PageStack(TypedDict):
    """Layers that share their tokens: the only stack, or the encoder, the decoder,
    cross-attention.
    """

    name: str
    """self, encoder, decoder, cross ..."""
    heads: int
    head_numbers: list[int]
    """The number of each head in the model; they differ from 0, 1, 2 ... where the page holds some
    heads only.
    """
    query: PageTokens
    key: PageTokens
    layers: list[PageLayer]
    absent: NotRequired[list[PageAbsent]]
    """Layers of the model without attention, or whose attention is not known; absent where there is
    none.
    """
    thumbs: PageArray
    """Axes layer, head, query, key: how often the even share a weight is, as mean over each block
    of the matrix and part of the number of keys.
    """
    sentences: NotRequired[PageSentences]
    """What rows and columns of the thumbnails stand for; only of a long text."""
    kinds: NotRequired[PageKinds]
    """Absent where the page was written before there were any."""
    moved: NotRequired[PageMoved]
    """Where the page is of a comparison."""


class PageModel(TypedDict):
    """The model that the record is of."""

    name: str
    """Hub name or folder, or what the user called it."""
    model_type: str
    """As in the configuration, such as bert; empty for bare arrays."""


class PageQuantity(TypedDict):
    """A quantity that the page can show in place of the weights."""

    name: str
    label: str
    explanation: str
    """What it is, in one sentence."""
    signed: bool
    """False where it is never below 0."""
    per: Literal["head", "layer"]
    """layer where there is one map for all heads together."""


class PagePattern(TypedDict):
    """Something that a head may do, with what its evidence was measured against."""

    name: str
    says: str
    """What the head does, in a few words."""
    source: str
    threshold: float
    """Least mean score of a label."""
    against: str
    """The baselines, between commas."""


class PageMeasure(TypedDict):
    """A number of each head."""

    name: str
    says: str
    unit: str
    """Empty for shares from 0 to 1."""


class PagePair(TypedDict):
    """A query and a key of the shown text that show a label."""

    query: int
    key: int
    weight: float


class PageShown(TypedDict):
    """What to look at for one label of one head."""

    pattern: int
    """Index into the patterns."""
    layer: int
    head: int
    texts: list[int]
    """Indices into the examples: the texts with the highest scores, best first."""
    scores: list[float]
    """The score of each of them."""
    pairs: list[PagePair]
    """Strongest first; none where the pattern is not one of single pairs."""


class PageEvidence(TypedDict):
    """Evidence about the heads, measured over texts, of which the page shows at most one."""

    stack: str
    """The stack whose heads were measured."""
    model: str
    """The model of those texts."""
    texts: int
    tokens: float | None
    """Median length of the texts; None where it is not known."""
    confidence: float
    """Confidence level of the intervals."""
    alpha: float
    """Chance of a false label that was accepted."""
    correction: str
    """For trying many heads and patterns."""
    caution: str
    """Why nothing can be concluded; empty where nothing prevents it."""
    patterns: list[PagePattern]
    status: PageArray
    """Axes pattern, layer, head: 0 for no label, 1 for a candidate, on one or too few texts, 2 for
    one that holds.
    """
    numbers: PageArray
    """Axes number, pattern, layer, head: score, low, high, baseline, effect, corrected p, texts;
    NaN where unknown.
    """
    measures: list[PageMeasure]
    values: PageArray
    """Axes measure, layer, head: means over texts; NaN where unknown."""
    examples: list[str]
    """Texts, cut where they are long."""
    shown: list[PageShown]
    """For the labels that are shown."""


class PageWord(TypedDict):
    """A word of the shown text; it has gold links, or could have been chosen instead."""

    label: str
    tokens: list[int]
    """Positions of its tokens in the stack."""


class PageArc(TypedDict):
    """A gold link."""

    dependent: int
    """Index into the words."""
    head: int
    """Index into the words."""
    label: str
    """Such as a relation."""


class PageLinks(TypedDict):
    """Gold links between words of the shown text: a dependency tree, or another annotation."""

    stack: str
    """The stack whose tokens the words are made of; its queries and keys are the same."""
    name: str
    """Name of the sentence; empty where there is none."""
    tree: bool
    """True where every word but the root has one head."""
    words: list[PageWord]
    arcs: list[PageArc]


class PageCandidate(TypedDict):
    """A token that the model might have written."""

    label: str
    probability: float


class PageGeneration(TypedDict):
    """How the model wrote the text itself; every list has one entry for each token written.

    Probabilities are of the model's own distribution, before temperature, top-p or anything else
    changed it. The model never read the last token, so it has no query and no key.
    """

    stack: str
    """Whose query tokens were written."""
    prompt: int
    """How many of these were given; token ``t`` was chosen by query ``prompt + t - 1``."""
    labels: list[str]
    probabilities: list[float]
    entropies: list[float]
    """In nats."""
    ranks: list[int]
    """1 is the most probable."""
    alternatives: list[list[PageCandidate]]
    """The most probable candidates, in order; none where they were not kept."""


class Page(TypedDict):
    """The header of a page: everything but the bytes of the arrays."""

    format: Literal[2]
    headscope: str
    """Version of headscope that wrote the page."""
    title: str
    model: PageModel
    verified: float | None
    """Largest difference between what was recomputed and the model's own; None for bare arrays."""
    stacks: list[PageStack]
    quantities: NotRequired[list[PageQuantity]]
    """All that some layer has beside weights and scores; weights too, where they are called
    otherwise.
    """
    note: NotRequired[str]
    """What the page is a comparison of, and how its tokens were aligned."""
    numbered: NotRequired[str]
    """Why some of the tokens are but numbers of positions."""
    checked: NotRequired[str]
    """Against what the layers were checked, the largest difference and its limit; and of a long
    text, what comes from some of its queries only.
    """
    unseen: NotRequired[str]
    """Layers whose attention was not seen, and how the tokens of a very long text are in groups."""
    selection: PageSelection
    pictures: NotRequired[list[PageArray]]
    """Axes row, column, channel: red, green and blue of the pictures that the patches are equal
    parts of.
    """
    other_pictures: NotRequired[list[PageArray]]
    """Those of the record that this one is compared with, where they are others; as many, or
    none.
    """
    evidence: NotRequired[PageEvidence]
    """Where evidence was given."""

    generation: NotRequired[PageGeneration]
    """Where the model wrote the text itself."""
    links: NotRequired[PageLinks]
    """Where the page was given some."""
    why: NotRequired[WhyPicture]
    """Why the model said a word of it, where that was asked."""
    beside: NotRequired[dict[str, Page]]
    """Further records by the name that the tray calls them, each with a header as if it had a page
    of its own. The chunks of one are called beside/NAME/CHUNK.
    """
