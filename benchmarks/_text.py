"""The passage that both viewers are given, written for this benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PASSAGE = """\
The ferry to the island left at seven, and by half past six the quay was already full of
people who had not slept. A woman in a green coat was counting her children, a man was asleep
on a sack of onions, and two students argued about whether the tide would be high enough to
carry them over the sandbank at the mouth of the harbour. "It was high enough yesterday," said
the taller one. "Yesterday the moon was full," said the other, who had read about it.

The captain listened to both of them and said nothing. She had made the crossing for thirty
years, in fog and in sunshine, with cattle and with brides, and she knew that the sandbank
moved a little every winter and that nobody who had only read about it could say where it lay
now. What she watched was the colour of the water. Where it turned from grey to brown there
was less than a metre below the keel, and where the gulls stood about in it, looking bored,
there was nothing below the keel at all.

At ten minutes to seven a boy came running down the steps with a letter in his hand. He gave
it to the captain, and she put it into her pocket without opening it, because she knew the
handwriting and because the wind had begun to turn. "Is there an answer?" asked the boy. "Tell
her that I will bring it myself," said the captain, "tomorrow, when the bank is in the post
office and not in my way." The boy did not understand the joke, but he laughed, since she had
given him a coin for his trouble.

They cast off when the bell of the old church struck the hour. The ropes fell into the water
with a slap, the engine coughed twice and then settled into its usual complaint, and the quay
with its lamps and its onions slid away behind them. Some of the passengers waved to friends
who had come to see them off; others, who had nobody to wave to, waved all the same, because
the morning was fine and it cost nothing. The woman in the green coat had counted her children
again and found one more than before, which turned out to belong to somebody else.

Beyond the lighthouse the swell was longer, and the students stopped arguing. The taller one
had gone to look at the chart, which was so old that the island on it had a different name,
and the other leaned over the rail and watched the water change from grey to brown and slowly
back to grey. Nothing scraped, nothing shook; the gulls, who had been standing about, rose
into the air, looked down at the boat and settled again where it had been. "You see," he said
to nobody in particular, "the tide was high enough." The captain heard him and smiled, and took
the letter out of her pocket, and read it at last, steering with her elbow.
"""


def passage(tokenizer: PreTrainedTokenizerFast, tokens: int) -> str:
    """Return the beginning of the passage that is exactly so many tokens long.

    It is cut where a token ends, so that tokenising it again gives the same tokens.

    Args:
        tokenizer: Tokeniser that can report character offsets.
        tokens: Length wanted, the tokeniser's special tokens included.

    Raises:
        ValueError: If the passage is too short, or its beginning is not `tokens` long.
    """
    special = tokenizer.num_special_tokens_to_add()
    encoded = tokenizer(
        PASSAGE, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    ends = [end for _, end in encoded["offset_mapping"]]
    words = tokens - special
    if not 0 < words <= len(ends):
        raise ValueError(
            f"{tokens} tokens were asked for; the passage gives {special + 1} "
            f"to {special + len(ends)}. Choose a length in between."
        )
    text = PASSAGE[: ends[words - 1]]
    length = len(tokenizer(text)["input_ids"])
    if length != tokens:
        raise ValueError(f"the passage was cut for {tokens} tokens and gives {length}")
    return text
