"""Tiny processors of pictures and videos, beside the tiny models of `headscope.testing`."""

from headscope.testing import tiny_model, tiny_tokenizer


def square_pictures():
    """Resizes pictures to 12 x 12."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    size = {"height": 12, "width": 12}
    return CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False)


def tiny_videos():
    """Resizes the frames of videos to 12 x 12."""
    from transformers.models.videomae.image_processing_pil_videomae import VideoMAEImageProcessorPil

    return VideoMAEImageProcessorPil(size={"height": 12, "width": 12}, do_center_crop=False)


def tiny_clip():
    """A tiny CLIP and its processor."""
    from transformers import CLIPProcessor

    return tiny_model("clip"), CLIPProcessor(
        image_processor=square_pictures(), tokenizer=tiny_tokenizer()
    )


def tiny_llava():
    """A tiny LLaVA and its processor; ``<image>`` stands in a text where a picture belongs."""
    from transformers import LlavaProcessor

    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    processor = LlavaProcessor(
        image_processor=square_pictures(),
        tokenizer=tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
    )
    return tiny_model("llava", image_token_id=tokenizer.convert_tokens_to_ids("<image>")), processor


CHAT = (
    "{% for message in messages %}{{ message.role }} : "
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}PICTURE {% else %}{{ part.text }} {% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}assistant :{% endif %}"
)
"""A form for messages, with the mark of a picture in place of PICTURE."""


def tiny_chat_llava():
    """A tiny LLaVA with room for an answer, and its processor, which has a form for messages."""
    model, processor = tiny_llava()
    processor.chat_template = CHAT.replace("PICTURE", "<image>")
    return _writing("LlavaForConditionalGeneration", model.config), processor


def tiny_qwen_vl(name="qwen2_vl"):
    """A tiny Qwen2-VL or Qwen3-VL (``"qwen3_vl"``), and its processor of merged patches."""
    import transformers
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    class WithoutVideos:
        """Videos need torchvision, which is not installed here."""

        def check_argument_for_proper_class(self, name, given):
            if name != "video_processor":
                super().check_argument_for_proper_class(name, given)

    tokenizer = tiny_tokenizer()
    marks = ["<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    pictures = Qwen2VLImageProcessorPil(
        patch_size=4, merge_size=2, min_pixels=64, max_pixels=24 * 40
    )
    kind = {"qwen2_vl": "Qwen2VLProcessor", "qwen3_vl": "Qwen3VLProcessor"}[name]
    form = CHAT.replace("PICTURE", "<|vision_start|><|image_pad|><|vision_end|>")
    processor = type(kind, (WithoutVideos, getattr(transformers, kind)), {})(
        image_processor=pictures, tokenizer=tokenizer, chat_template=form
    )
    numbers = {"image": 58, "vision_start": 59, "vision_end": 60, "video": 61}
    changes = {f"{mark}_token_id": number for mark, number in numbers.items()}
    config = tiny_model("qwen2_vl", **changes).config
    if name == "qwen2_vl":
        return _writing("Qwen2VLForConditionalGeneration", config), processor
    given = config.to_dict()
    text = {key: given["text_config"][key] for key in SHARED} | {"head_dim": 8}
    vision = {key: given["vision_config"][key] for key in SHARED_VISION}
    vision |= {"hidden_size": 24, "out_hidden_size": 48, "intermediate_size": 40}
    vision |= {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64}
    config = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, **changes)
    return _writing("Qwen3VLForConditionalGeneration", config), processor


def tiny_video_qwen_vl(name="qwen2_vl"):
    """The same with a processor that reads videos, for which transformers needs torchvision."""
    import transformers

    model, given = tiny_qwen_vl(name)
    own = {"qwen2_vl": "Qwen2VL", "qwen3_vl": "Qwen3VL"}[name]
    videos = getattr(transformers, f"{own}VideoProcessor")(
        patch_size=4, merge_size=2, size={"shortest_edge": 64, "longest_edge": 4 * 24 * 40}
    )
    place = "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|> {% else %}"
    return model, getattr(transformers, f"{own}Processor")(
        image_processor=given.image_processor,
        tokenizer=given.tokenizer,
        video_processor=videos,
        chat_template=given.chat_template.replace("{% else %}", place),
    )


def with_head(task, name="bert", *, seed=0, **changes):
    """A tiny model with the head of a task, such as MaskedLM, whose weights are nearly even."""
    import torch
    import transformers

    config = tiny_model(name, **changes).config
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return getattr(transformers, f"AutoModelFor{task}").from_config(config).eval()


def _writing(name, config):
    """A model with its head, random weights and room for an answer."""
    import torch
    import transformers

    from headscope.testing._models import sharpen

    config.text_config.max_position_embeddings = 160
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(transformers, name)(config).eval()
        sharpen(model)
    return model


SHARED = tuple(
    (
        "hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size "
        "vocab_size rope_parameters bos_token_id eos_token_id pad_token_id"
    ).split()
)
SHARED_VISION = (
    "depth num_heads patch_size spatial_merge_size temporal_patch_size in_channels".split()
)
