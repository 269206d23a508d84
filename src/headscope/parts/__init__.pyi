"""The public names of `headscope.parts`, each once; `lazy_loader` reads them from here."""

from ._conversation import Conversation as Conversation
from ._conversation import RenderedText as RenderedText
from ._conversation import chat_form_of as chat_form_of
from ._conversation import numbered as numbered
from ._finder import PartsChoice as PartsChoice
from ._finder import check_choice as check_choice
from ._finder import parts_of as parts_of
from ._finder import with_parts as with_parts
