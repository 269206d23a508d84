"""What a live model and its page say to each other, as JSON.

Declared here once, as `headscope.views.contract` declares the header of a page;
``frontend/contract`` holds the JSON schema generated from it (``make contract``).
`headscope.live` lists what is asked and answered at each address.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from headscope.views.answer_contract import AnswerPicture
from headscope.views.contract import Page, PageMoved
from headscope.views.why_contract import WhyPicture

ChangeKind = Literal["zero", "uniform", "mean", "cut", "patch"]
AnswerKind = Literal["next-token", "masked", "classes", "target", "none"]
"""What a model says: the next token, the masked word, a class, the next token of a target text, or
nothing beside its states.
"""
InputField = Literal["text", "text_b", "target", "image", "audio", "messages"]


class LiveLimits(TypedDict):
    """What a request may ask for at most."""

    tokens: int
    """Of a text; memory grows with their square."""
    seconds: float
    """That a request may run."""
    characters: int
    """Of a text."""
    changes: int
    queue: int
    """Pages that may wait for the model; one more is asked to come again (503)."""
    picture_bytes: int
    """Of a picture or sound, before it is written as text."""


class LiveStack(TypedDict):
    """Layers and heads of one stack of the model."""

    name: str
    layers: list[int]
    """The numbers of its layers with attention."""
    heads: int
    """The most that one of them has."""


class LiveMessage(TypedDict):
    """One turn of a conversation, for a model that has a form for them."""

    role: str
    content: str
    off: NotRequired[bool]
    """Left out of what is read; the others keep their names."""


class LiveFacts(TypedDict):
    """``GET /model.json``: what the model is, and what can be asked of it."""

    name: str
    device: str
    dtype: str
    revision: str
    """Commit of the hub repository; empty where it is not known."""
    implementation: str
    """How it computes attention: sdpa, eager ..."""
    kind: AnswerKind
    untrained: str
    """Why its guesses say nothing and are hidden: the head that makes them was not trained; else
    empty.
    """
    fields: list[InputField]
    """What an input may have."""
    limits: LiveLimits
    stacks: list[LiveStack]
    """None before a first text was read."""
    chat: bool
    """Whether it has a form for messages."""
    writes: bool
    """Whether it can continue a text: ``POST /write``."""
    lens: bool
    """Whether it can be asked what each layer would say: ``POST /lens``."""
    matters: list[Literal["gradient", "exact"]]
    """How it can be asked what matters: ``POST /matters``."""
    mask: str
    """The token that stands for a hidden word; empty where there is none."""
    picture_mark: str
    """What stands in a text where a picture belongs, put before a text that has none; empty
    where texts have no place for one.
    """
    sampling_rate: int
    """Samples a second of a sound that it hears; 0 where it hears none."""
    loading: bool
    """True as long as the model is being loaded: all else is empty then."""
    failed: str
    """Why it could not be loaded; else empty."""
    threads: int
    """Of torch."""
    text: str
    """The text that the server was started with; empty without one."""
    messages: list[LiveMessage]
    """The conversation that it was started with; empty without one."""
    beside: str
    """Name of the second model, which the first can be compared with; empty without one."""
    atlas: int
    """Number of texts of the atlas that drawings can be compared with; 0 without one."""
    versions: dict[str, str]
    """Of headscope, torch and transformers."""


class LiveInput(TypedDict):
    """What the model reads."""

    text: NotRequired[str]
    text_b: NotRequired[str]
    """The second text of a pair."""
    target: NotRequired[str]
    """What the decoder of an encoder-decoder reads; by default what it writes itself."""
    messages: NotRequired[list[LiveMessage]]
    """In place of a text."""
    image: NotRequired[str]
    """The bytes of a PNG or JPEG in base64."""
    audio: NotRequired[str]
    """The bytes of a WAV in base64, of as many samples a second as the model hears."""


FromText = TypedDict("FromText", {"from": NotRequired[str]})
"""A field whose name is a word of Python."""


class ModelChange(FromText):
    """A change of some heads. ``from`` is the other text that patch takes values from, or several
    texts, a line each, that mean takes the mean over.
    """

    do: ChangeKind
    """zero: the heads hand on nothing; uniform: they look at all alike; mean: as they do on average
    over other texts; cut: links carry nothing; patch: they hand on what they do on another text.
    """
    layer: int
    heads: NotRequired[list[int]]
    """All where it is absent."""
    stack: NotRequired[str]
    """May be left out where the model has only one."""
    queries: NotRequired[list[int]]
    """Positions of the tokens that look; of patch those that are patched. All where absent."""
    keys: NotRequired[list[int]]
    """Of cut: positions of the tokens that are looked at."""


class LiveLooking(TypedDict):
    """What the page shows, so that the answer holds what it draws first."""

    stack: NotRequired[str]
    layer: NotRequired[int]
    heads: NotRequired[list[int]]
    """All where absent."""
    view: NotRequired[str]
    quantity: NotRequired[str]


class ModelQuestion(TypedDict):
    """What all questions to a model have."""

    page: str
    """A random name of the tab: of each page only the newest question is answered."""
    input: LiveInput
    changes: list[ModelChange]


class LiveQuestion(ModelQuestion):
    """``POST /ask``: read this, with these changes."""

    looking: LiveLooking
    second: NotRequired[bool]
    """Ask the second model."""


class CompareQuestion(TypedDict):
    """``POST /compare``: two records beside each other, token by token and head by head."""

    page: str
    a: str
    """Id of the first record."""
    b: str
    """Id of the second: of another text, or of the second model."""
    looking: LiveLooking


class LiveGuess(TypedDict):
    """A token or class that the model holds possible."""

    id: int
    """Its number in the vocabulary, or of the class."""
    label: str
    continues: bool
    """True where the token continues the word before it."""
    probability: float


class LivePlace(TypedDict):
    """What the model says at one place of what it reads."""

    at: int
    """The query token; -1 where it concerns the whole."""
    token: str
    """As a reader sees it."""
    before: list[LiveGuess]
    """The five likeliest, of the model as it is; none where it does not guess."""
    after: NotRequired[list[LiveGuess]]
    """The same under the changes."""
    kl: NotRequired[float]
    """How far the changes moved it: KL(before || after) in nats; of a model that does not guess the
    cosine distance of its states.
    """


class LiveOutput(TypedDict):
    """What the model says."""

    kind: AnswerKind
    stack: str
    """Whose query tokens the places are; empty where they are of the whole."""
    places: list[LivePlace]
    moved: NotRequired[dict[str, PageMoved]]
    """With changes: how far each head moved, by stack; the same as in the header."""
    note: str
    """What is to be known of all this, in words."""


class LiveOpening(TypedDict):
    """The head of an answer in bytes: its length as four bytes, little-endian, then this as JSON,
    then the bytes of its chunks, one after the other.
    """

    id: str
    """Of the record; empty of a record that was opened from a file."""
    header: Page
    output: LiveOutput | None
    changes: list[ModelChange]
    """As the server understood them."""
    address: str
    """The same as it stands in an address: zero:2-0,3;cut:5-1q4k0."""
    python: str
    """The same as a line of Python."""
    timings: dict[str, float]
    """What took how long, in milliseconds."""
    chunks: list[tuple[str, int]]
    """Name and number of bytes of each chunk, in order."""
    partners: NotRequired[dict[str, list[tuple[int, int, int, int]]]]
    """Of two models whose heads are not matched by number, by stack of the first: layer and head of
    each of its heads, and of that of the second which is compared with it.
    """


class WriteQuestion(ModelQuestion):
    """``POST /write``: continue this text. The answer is a line of JSON for each token."""

    tokens: int
    """How many to write at most."""
    at: NotRequired[int]
    """Keep this many tokens of the text (special ones count) and let the rest go."""
    written: NotRequired[list[int]]
    """The numbers of the tokens that come next: to go on from an alternative, those that were
    written before it, and its own.
    """
    lens: NotRequired[bool]
    """Also what each layer would have predicted (logit lens)."""


class LensLayer(TypedDict):
    """What the model would say were it to end after this layer."""

    layer: int
    predictions: list[LiveGuess]


class LensQuestion(ModelQuestion):
    """``POST /lens``: what each layer would say at a place of the text."""

    at: int
    """A place of the output, by its ``at``."""


class LensAnswer(TypedDict):
    """What each layer would say, the lowest first."""

    at: int
    layers: list[LensLayer]


class WrittenToken(TypedDict):
    """A token that was written."""

    token: str
    continues: bool
    """True where it continues the word before it."""
    id: int
    probability: float
    entropy: float
    """In nats."""
    alternatives: list[LiveGuess]
    """The most probable, the written one among them."""
    lens: NotRequired[list[LensLayer]]


class WriteEnd(TypedDict):
    """The last line: the record of all that was read and written."""

    id: str
    text: str
    """Prompt and what was written."""
    stopped: Literal["end", "length"]
    """Whether the model ended the text, or it is as long as was asked for."""


class AnswerQuestion(ModelQuestion):
    """``POST /answer``: answer the text, or the conversation, and its picture where it has one.
    What comes is a line of JSON for each token, and then `AnswerEnd`; where only other heads are
    asked for, the end alone.
    """

    tokens: int
    """How many to write at most."""
    layers: NotRequired[list[int]]
    """That the attention is the mean over; all where absent."""
    heads: NotRequired[list[tuple[int, int]]]
    """Layer and head of each that it is the mean over, in place of layers."""
    keep_sinks: NotRequired[bool]
    """Whether patches stay that get outsized attention from most words."""


class AnswerEnd(TypedDict):
    """The last line: the record of question and answer, and what each word looked at."""

    id: str
    question: str
    text: str
    """The answer."""
    picture: AnswerPicture
    """What each word looked at, and needed."""


class MattersTarget(TypedDict):
    """The guess of which is asked what matters to it."""

    at: NotRequired[int]
    """A place of the output, by its ``at``; the last one where absent."""
    id: NotRequired[int]
    """The number of the guess; the likeliest where absent."""


class MattersQuestion(ModelQuestion):
    """``POST /matters``: which heads matter to a guess. The answer is lines of JSON."""

    target: MattersTarget
    method: Literal["gradient", "exact"]
    """gradient: one pass forward and back (Michel et al. 2019, equation 2), which gives no sign.
    exact: each head is zeroed in turn.
    """


class MattersDone(TypedDict):
    """How far it got."""

    done: int
    of: int


class MattersValues(TypedDict):
    """What matters, for one stack; the last lines."""

    stack: str
    values: list[tuple[int, int, float]]
    """Layer, head and effect: by how much the negative log probability of the guess, in nats, rises
    without the head; of gradient its size alone. Of a model that does not guess: the cosine
    distance of its states.
    """
    label: str
    """What the effects are, in words."""


class WhyTokenQuestion(LensQuestion):
    """``POST /why``: why a token was said. What comes is lines of `MattersDone`, then `WhyEnd`."""

    id: int
    """The token that is explained."""


class WhyEnd(TypedDict):
    """The last line: the way back from the token, or why there is none."""

    picture: WhyPicture


class AttendedQuestion(ModelQuestion):
    """``POST /attended``: why a head attends from one token to another."""

    stack: str
    place: list[int]
    """Layer, head, query and key; without a key that with the largest weight."""


class AttendedAnswer(TypedDict):
    """The only line: what wrote the key and the query."""

    pair: list[tuple[str, int]]
    """Query and key, each with its position."""
    html: str
    """A sentence, a table and a note, every text in them escaped."""


class LiveAtlas(TypedDict):
    """``GET /atlas.json``: the mean attention of every head over the texts of an atlas, which the
    page compares with a drawing.
    """

    texts: int
    stack: str
    """Whose heads these are."""
    side: int
    """Rows and columns of each map are so many of the first tokens of a text, and so many of the
    last.
    """
    heads: list[tuple[int, int]]
    """Layer and number of each head."""
    mean_maps: str
    """The maps one after the other, a byte for the root of each mean weight, in base64."""


class LiveError(TypedDict):
    """Why something was not done; with the status 400, 403, 409, 410, 413, 415 or 503."""

    error: str


class LiveMessages(TypedDict):
    """All that goes over the wire, so that the types are written in one place."""

    facts: LiveFacts
    question: LiveQuestion
    compare: CompareQuestion
    opening: LiveOpening
    write: WriteQuestion
    written: WrittenToken | WriteEnd | LiveError
    lens: LensQuestion
    lensed: LensAnswer
    answer: AnswerQuestion
    answering: WrittenToken | AnswerEnd | LiveError
    matters: MattersQuestion
    mattering: MattersDone | MattersValues | LiveError
    why: WhyTokenQuestion
    way: MattersDone | WhyEnd | LiveError
    attended: AttendedQuestion
    attending: AttendedAnswer | LiveError
    atlas: LiveAtlas
