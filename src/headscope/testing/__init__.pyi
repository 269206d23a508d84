"""The public names, each once: where it is defined."""

from ._examine import Support as Support
from ._examine import examine as examine
from ._models import ARCHITECTURES as ARCHITECTURES
from ._models import KINDS as KINDS
from ._models import cipher_pairs as cipher_pairs
from ._models import cipher_tokenizer as cipher_tokenizer
from ._models import cipher_translator as cipher_translator
from ._models import random_record as random_record
from ._models import random_weights as random_weights
from ._models import tiny_model as tiny_model
from ._models import tiny_tokenizer as tiny_tokenizer
from ._type_process import every_type as every_type
from ._type_process import examine_type as examine_type
from ._type_process import examine_types as examine_types
from ._type_process import family_of as family_of
from ._type_process import support_tables as support_tables
