"""The public names, each once: where it is defined."""

from .kernel import live_widget as live_widget
from .serving import serve as serve
