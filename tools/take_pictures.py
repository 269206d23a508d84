"""Take the pictures of README and docs anew, from the demo model.

make pictures

Those of a live model are taken by take_live_pictures.py, those of atlases by
take_atlas_pictures.py.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageOps
from playwright.sync_api import Browser, sync_playwright

import find_chromium
import headscope as hs
from headscope.capturing import load_model
from headscope.comparison import Effect
from headscope.linguistics import Sentence
from headscope.testing import tiny_model
from picture_texts import TEXTS
from take_atlas_pictures import atlas_pictures
from take_live_pictures import live_pictures

PAIR = (
    "The rabbit quickly hopped across the road.",
    "The turtle slowly crawled behind it because it was tired.",
)
ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "overview": ("", "light"),
    "overview_dark": ("", "dark"),
    "head_view_pinned": ("view=head&layer=3&heads=5&query=15", "light"),
    "model_view": ("tiles=lines", "light"),
    "neuron_view": ("view=neuron&layer=3&heads=8&query=15&key=14", "dark"),
}
"""File name: what the page's address says, and the colours."""
WITH_EVIDENCE = {"head_card": ("view=head&layer=1&heads=8", "light")}
"""The same of the page with evidence."""
EFFECT = {"compare_effect": ("view=head&layer=2&heads=8&quantity=difference", "light")}
"""The same of the page of an effect."""
TWO_TEXTS = {"compare_texts": ("view=matrix&layer=1&heads=8&quantity=difference", "light")}
"""The same of the page of two texts."""
VIG = {
    "neuron_vector": ("view=neuron&layer=2&heads=7&query=10&key=7&vector=key", "light"),
    "neuron_queries": ("view=neuron&layer=2&heads=7&query=2,10,16&neurons=ranked", "light"),
    "head_view_rows": ("view=head&layer=1&heads=8&layout=rows", "light"),
}
"""The same of the page of Vig's pair."""
RECORDS = {"compare_records": ("", "light")}
"""The same of the page of two records beside each other."""
TRAY = [
    "2-0",
    "2-0 record=b",
    {"layer": 3, "head": 1, "query": "he"},
    {"record": "b", "layer": 3, "head": 1, "query": "she"},
]
LINKED = {"relations_view": ("view=head&layer=2&heads=8", "light")}
"""The same of the page of a sentence with its tree; all of the page, as the tree is at its end."""
TREE = Sentence(
    words=(
        "The",
        "tired",
        "rabbit",
        "that",
        "we",
        "saw",
        "quickly",
        "hopped",
        "across",
        "the",
        "muddy",
        "road",
        ".",
    ),
    heads=(3, 3, 8, 6, 6, 3, 8, 0, 12, 12, 12, 8, 8),
    relations=(
        "det",
        "amod",
        "nsubj",
        "obj",
        "nsubj",
        "acl:relcl",
        "advmod",
        "root",
        "case",
        "det",
        "amod",
        "obl",
        "punct",
    ),
)
SEEN = {"text_view_picture": ("view=text&query=113", "light")}
"""The same of the page of a picture."""
TWO_PICTURES = {"compare_pictures": ("view=text&query=113&quantity=difference", "light")}
"""The same of the page of two pictures."""
ANSWER = {"answer": ("", "light"), "answer_dark": ("", "dark")}
"""The same of the page of an answer."""
WHY = {"why": ("", "light"), "why_dark": ("", "dark")}
"""The same of the page of why a word was said, which is taken whole."""
STRAWBERRIES = ("I went to the store.", "At the store, I bought fresh strawberries.")
HE = "The doctor asked the nurse whether he could help."
SHE = "The doctor asked the kind nurse whether she could help."


def demo_pictures(browser: Browser) -> None:
    """The pictures of the demo model."""
    model, tokenizer = load_model(None)
    record = hs.capture(model, tokenizer, *PAIR)
    heads = hs.heads(hs.capture_many(model, tokenizer, list(TEXTS)))
    with TemporaryDirectory() as folder:
        he, she = (hs.capture(model, tokenizer, text) for text in (HE, SHE.replace("kind ", "")))
        views = [
            (hs.view(hs.capture(model, tokenizer, *STRAWBERRIES)), VIG),
            (hs.view(he, beside=[she], tray=TRAY), RECORDS),
            (hs.view(record), PICTURES),
            (hs.view(record, evidence=heads), WITH_EVIDENCE),
            (_answered().view(), ANSWER),
            (_why().view(), WHY),
            (_effect(model, tokenizer).view(), EFFECT),
            (hs.view(hs.capture(model, tokenizer, TREE.text), links=TREE), LINKED),
            (hs.view(_seen(), head=1), SEEN),
            (hs.compare(_seen(), _seen(mirrored=True)).view(head=1), TWO_PICTURES),
            (
                hs.compare(*(hs.capture(model, tokenizer, text) for text in (HE, SHE))).view(),
                TWO_TEXTS,
            ),
        ]
        saved = [
            (view.save(Path(folder) / f"{number}.html"), of)
            for number, (view, of) in enumerate(views)
        ]
        for page, name, selection, scheme in [
            (page, name, *told) for page, of in saved for name, told in of.items()
        ]:
            tab = browser.new_page(viewport={"width": 1240, "height": 760}, color_scheme=scheme)
            tab.goto(f"{page.as_uri()}#v=2&{selection}")
            tab.locator('[data-headscope][data-ready="true"]').wait_for(state="attached")
            tab.wait_for_timeout(500)
            tab.screenshot(path=FOLDER / f"{name}.png", full_page=name in LINKED | WHY)
            tab.close()
            print(FOLDER / f"{name}.png")


def _effect(model: Any, tokenizer: Any) -> Effect:
    """What zeroing the head that looks at the next word moves, beside zeroing any other head of its
    layer.
    """
    controls = [[hs.Zero(layer=1, heads=[head])] for head in range(12) if head != 8]
    return hs.effect(
        model, tokenizer, PAIR[0], interventions=[hs.Zero(layer=1, heads=[8])], controls=controls
    )


def _answered() -> hs.answering.Answer:
    """An answer that each of two documents alone is enough for."""
    documents = [
        "At the library they use seven. The road was quiet on Friday. Dragon opens the quarry.",
        "The code of the mill is amber falcon. It rained near the barn on Monday.",
        "Copper opens the tower. Nobody at the mill remembers the code. The old map hangs by the "
        "door. Two visitors came on Tuesday.",
        "For the garden the code is onyx. Amber falcon opens the mill.",
    ]
    return hs.answer(None, documents=documents, question="Which code opens the mill?")


def _why() -> hs.why.Why:
    """Why a code was said: the document that has it, and the word that names its place."""
    documents = [
        "At the library they use seven. The road was quiet on Friday.",
        "The code of the mill is amber falcon. It rained near the barn on Monday.",
        "Copper opens the tower. Nobody at the mill remembers the code.",
    ]
    text = {"documents": documents, "question": "What is the code of the library?"}
    return hs.why(hs.answering.DEMO, text=text)


def _seen(*, mirrored: bool = False) -> hs.Record:
    """A picture, seen by heads whose keys are their queries: each patch looks at those that are
    like it.
    """
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    height, width = 144, 216
    model = tiny_model(
        "vit", image_size=(height, width), patch_size=12, num_hidden_layers=1, initializer_range=0.5
    )
    for name, weights in model.named_parameters():
        if ".q_proj." in name:
            model.get_parameter(name.replace(".q_proj.", ".k_proj.")).data.copy_(weights)
        elif "position" in name:
            weights.data.zero_()
    processor = ViTImageProcessorPil(size={"height": height, "width": width})
    picture = _still_life(height, width)
    return hs.capture(model, processor, image=ImageOps.mirror(picture) if mirrored else picture)


def _still_life(height: int, width: int) -> Image.Image:
    """Shapes before an evening sky, two of them red."""
    down, along = np.mgrid[:height, :width] / np.array([height, width]).reshape(2, 1, 1)
    sky = np.stack([70 + 150 * down, 110 + 60 * down + 20 * along, 200 - 60 * down], axis=-1)
    picture = Image.fromarray(sky.astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0.8 * height, width, height), fill=(70, 84, 66))
    draw.ellipse((24, 48, 84, 108), fill=(214, 48, 40))
    draw.rectangle((110, 60, 150, 122), fill=(240, 196, 60))
    draw.polygon([(156, 122), (180, 50), (206, 122)], fill=(196, 40, 44))
    draw.ellipse((146, 10, 170, 34), fill=(250, 250, 240))
    return picture


def main() -> None:
    """Take them all."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium.needed(), args=find_chromium.FLAGS
        )
        demo_pictures(browser)
        live_pictures(browser)
        atlas_pictures(browser)
        browser.close()


if __name__ == "__main__":
    main()
