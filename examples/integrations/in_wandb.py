"""Log the page and the figure of one text to Weights & Biases, such as at every checkpoint of a
training.
"""

import io

import wandb
from PIL import Image

import headscope as hs

record = hs.capture(None, text="The rabbit quickly hopped across the road.")
figure = hs.figure(record, view="model")
with wandb.init(project="attention") as run:
    run.log(
        {
            "attention": wandb.Html(hs.view(record).html),
            "heads": wandb.Image(Image.open(io.BytesIO(figure.to_bytes("png", dpi=200)))),
        }
    )
