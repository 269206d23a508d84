"""What several studies share: where texts come from, splits of documents, plots, words for
numbers.
"""
