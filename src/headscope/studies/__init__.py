"""The literature's analyses end to end over many texts; each result prints itself."""

from headscope.studies._faithfulness import Explained, Faithfulness, Tampering, erasure, faithfulness

__all__ = ["Explained", "Faithfulness", "Tampering", "erasure", "faithfulness"]
