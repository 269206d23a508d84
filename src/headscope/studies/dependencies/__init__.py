"""Which heads look along dependency relations: the study that `headscope.relations` runs."""
