import { signal } from "@preact/signals-core";
import type { WriteEnd, WrittenToken } from "../contract/live";
import { readable } from "./label";
import type { Guess, Live } from "./live";
import { newestQuestion } from "./question";

/** A token that was written, or chosen of the text that was read, where the entropy is not known. */
export type Token = Omit<WrittenToken, "entropy"> & Partial<Pick<WrittenToken, "entropy">>;

/** From which token on another one is written. */
interface Branch {
  readonly at: number;
  readonly choice: number;
}

/** What was written up to a branch, with the token that was chosen in place of the next. */
function branched(tokens: readonly Token[], { at, choice }: Branch): readonly Token[] {
  const was = tokens[at];
  const chosen = was?.alternatives.find(({ id }) => id === choice);
  if (!chosen) return tokens.slice(0, at);
  const { id, label, continues, probability } = chosen;
  return [...tokens.slice(0, at), { ...was, id, continues, probability, token: label }];
}

/** What a model writes on: tokens as they come, ended at will, and branched off from an alternative. */
export function writingState(live: Live) {
  const tokens = signal<readonly Token[]>([]);
  const prompt = signal("");
  const { run, ...newest } = newestQuestion(live.asked);
  /** Tokens of the prompt, special ones too: where a branch begins is counted from there. */
  let given = 0;
  /** What was read before it was written on, and all of it afterwards. */
  let whole = "";

  /** What is asked: to go on, or to go on from an alternative. */
  function question(count: number, lens: boolean, from?: Branch) {
    const { asked } = live.answer.peek();
    const place = from && { at: given + from.at, choice: from.choice };
    return { input: { ...asked.input, text: whole }, changes: [...asked.changes], tokens: count, lens, ...place };
  }
  function begin(from?: Branch): void {
    const { asked, source } = live.answer.peek();
    tokens.value = from ? branched(tokens.peek(), from) : [];
    if (from) return;
    given = source.header.stacks[0].query.labels.length;
    prompt.value = asked.input.text ?? "";
    whole = prompt.peek();
  }
  /** The text up to a place, and the guess in place of all that follows. */
  function beginAt({ at, choice, guesses }: Guess): Branch {
    const { asked, source } = live.answer.peek();
    const { labels, special, continues } = source.header.stacks[0].query;
    const read = labels.slice(0, at + 1).map((label, token) => {
      const gap = token > 0 && !continues[token] ? " " : "";
      return special[token] ? "" : gap + readable(label, 24).text;
    });
    [given, whole, prompt.value] = [at + 1, asked.input.text ?? "", read.join("").trim()];
    const { id, label, continues: goesOn, probability } = choice;
    tokens.value = [{ id, token: label, continues: goesOn, probability, alternatives: [...guesses] }];
    return { at: 0, choice: id };
  }
  async function finish({ id, text }: WriteEnd, ending: AbortSignal): Promise<void> {
    const { asked } = live.answer.peek();
    whole = text;
    const next = { ...asked, input: { ...asked.input, text } };
    const opened = await live.model.opened(id, next, live.looking());
    // Something newer may have been asked meanwhile, which this must not take the place of.
    if (!ending.aborted) await live.show(opened);
  }
  async function readLines(count: number, lens: boolean, ending: AbortSignal, from?: Branch): Promise<void> {
    for await (const line of live.model.write(question(count, lens, from), ending)) {
      if ("token" in line) tokens.value = [...tokens.peek(), line];
      else await finish(line, ending);
    }
  }
  // What was typed or changed just before is part of what is written on.
  const write = (count: number, lens: boolean, from?: Branch) =>
    run((ending) => {
      begin(from);
      return readLines(count, lens, ending, from);
    }, live.settled());
  return {
    ...newest,
    /** What was written, in order. */
    tokens,
    /** What was given before it. */
    prompt,
    write,
    /** Goes on from a guess of the text that was read. */
    writeFrom: (guess: Guess, count: number, lens: boolean) => write(count, lens, beginAt(guess)),
  };
}
