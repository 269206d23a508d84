"""Tiny processors of pictures, beside the tiny models of `headscope.testing`."""

from headscope.testing import tiny_model, tiny_tokenizer


def square_pictures():
    """Resizes pictures to 12 x 12."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    size = {"height": 12, "width": 12}
    return CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False)


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
