"""What tests of headscope, ours and others', are made of."""

from headscope.testing._models import FAMILIES, tiny_model, tiny_tokenizer
from headscope.testing._records import random_record, random_weights

__all__ = ["FAMILIES", "random_record", "random_weights", "tiny_model", "tiny_tokenizer"]
