"""The public names, each once: where it is defined."""

from .serving import serve as serve
