"""Ray through its adapter gives the same, where it is installed."""

import pytest
from words_job import digest, ran

from headscope.corpus import CorpusText, RayExecutor, given


def test_tasks_of_ray_give_the_same_bits_and_name_a_killer(corpus):
    ray = pytest.importorskip("ray", reason="Ray is not installed; it is no extra of this project")

    def done(texts, **options):
        with ran(texts, **options) as finished:
            return [each["text"] for each in finished.failed], digest(finished)[1]

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        engine = given(RayExecutor(num_cpus=1))
        assert done(corpus, engine=engine, part_size=9) == done(corpus)
        guilty, bits = done([*corpus, CorpusText("die now")], engine=engine, part_size=12)
        assert (guilty, bits) == (["die now"], done(corpus)[1])
    finally:
        ray.shutdown()
