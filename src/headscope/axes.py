"""The axis names, one vocabulary for signatures, files and pages.

Weights are ``A[query, key]``: row = the token that looks, column = the token that is looked at.
Layers and heads count from 0 and are printed as ``layer-head``; papers often count from 1.
"""

from __future__ import annotations

LAYER = "layer"
HEAD = "head"
KV_HEAD = "kv_head"
QUERY = "query"
KEY = "key"
FEATURE = "feature"
TOKEN = "token"
