"""Does attention say what mattered? The study that `headscope.faithfulness` runs."""
