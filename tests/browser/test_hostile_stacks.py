"""Strangers' strings as names of stacks: they are text, and lead to the data of their stack."""

from itertools import count

from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

from ..hostile import CODE, FOR_CODE, NAME


def test_names_of_stacks_are_text_and_lead_to_their_data(show, rng, hostile):
    names = [name for name in hostile if name.isprintable()]
    check_stacks(show(record_of_stacks(names, rng), view="head"), names)


def test_names_of_stacks_are_text_and_lead_to_their_data_on_a_server(served, rng):
    names = [*FOR_CODE, *CODE[:8]]
    with served(record_of_stacks(names, rng), view="head") as view:
        check_stacks(view, names)


def record_of_stacks(names, rng):
    """Each stack with a number of tokens that tells it from others."""
    stacks = {}
    for name, size in zip(names, count(3), strict=False):
        tokens = Tokens(pieces=tuple(f"w{number}" for number in range(2 + size % 11)))
        weights = random_weights(rng, (1, len(tokens), len(tokens)))
        stacks[name] = Stack(
            name=name, query=tokens, key=tokens, layers=(Layer(layer=0, weights=weights),)
        )
    return Record(stacks=stacks, model=ModelFacts(name=NAME))


def check_stacks(view, names):
    choice = "[data-stack-choice] option"
    assert view.page.locator(choice).all_text_contents() == names
    wrong = view.page.evaluate(
        """async (choice) => {
            const { shadowRoot } = document.querySelector("#headscope");
            const wrong = [];
            // One name in five leads there: all differ from each other, and all are shown.
            const options = [...shadowRoot.querySelectorAll(choice)].reverse();
            for (const option of options.filter((_, number) => number % 5 === 0)) {
                const wanted = option.value;
                option.parentElement.value = wanted;
                option.parentElement.dispatchEvent(new Event("change", { bubbles: true }));
                let shown;
                for (let frames = 0; frames < 50; frames++) {
                    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
                    shown = shadowRoot.querySelector("[data-headscope]")?.dataset.stack;
                    if (shown === wanted) break;
                }
                if (shown !== wanted) wrong.push([wanted, shown]);
            }
            return wrong;
        }""",
        choice,
    )
    assert wrong == []
    assert view.page.locator("[data-failure]").count() == 0
