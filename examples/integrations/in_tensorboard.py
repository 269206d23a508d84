"""Log the figure of one text to TensorBoard."""

import io

import numpy as np
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

import headscope as hs

record = hs.capture(None, text="The rabbit quickly hopped across the road.")
figure = hs.figure(record, view="model")
pixels = np.array(Image.open(io.BytesIO(figure.to_bytes("png", dpi=200))).convert("RGB"))
with SummaryWriter("runs") as writer:
    writer.add_image("attention", pixels, global_step=0, dataformats="HWC")
