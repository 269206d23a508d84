"""A cell of a Databricks notebook, where `displayHTML` is there without an import."""

import headscope as hs

record = hs.capture(None, text="The rabbit quickly hopped across the road.")
displayHTML(hs.view(record).html)  # noqa: F821
