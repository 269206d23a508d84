"""What tests of headscope, ours and others', are made of."""

from headscope.testing._architectures import ARCHITECTURES, KINDS
from headscope.testing._cipher import cipher_pairs, cipher_tokenizer, cipher_translator
from headscope.testing._every_type import every_type, examine_type, family_of
from headscope.testing._examine import Support, examine
from headscope.testing._models import tiny_model, tiny_tokenizer
from headscope.testing._records import random_record, random_weights
from headscope.testing._type_process import examine_types

__all__ = [
    "ARCHITECTURES",
    "KINDS",
    "Support",
    "cipher_pairs",
    "cipher_tokenizer",
    "cipher_translator",
    "every_type",
    "examine",
    "examine_type",
    "examine_types",
    "family_of",
    "random_record",
    "random_weights",
    "tiny_model",
    "tiny_tokenizer",
]
