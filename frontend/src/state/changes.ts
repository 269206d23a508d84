import type { LiveInput, ModelChange } from "../contract/live";
import type { PageStack } from "../contract/page";
import { literal } from "./call";
import { quoted, readable } from "./label";
import { follower } from "./movedPins";

// What is done to heads: as switches that a reader sees, as a request, in an address, and in words.

/** What each change is called on its switch, and what it does. */
export const CHANGE_WORDS: Readonly<Record<ModelChange["do"], readonly [name: string, does: string]>> = {
  zero: ["silence", "its output is set to zero"],
  uniform: ["make uniform", "it looks at all tokens alike"],
  mean: ["replace by the mean", "its output is its mean over other texts"],
  cut: ["cut", "the link carries nothing"],
  patch: ["patch", "its output is that on another text"],
};

/** What tells one change from another. */
export function keyOfChange({ do: kind, stack = "", layer, heads, queries, keys, from = "" }: ModelChange): string {
  return [kind, stack, layer, heads?.join(), queries?.join(), keys?.join(), from].join("|");
}

/** The list with a change added, or without it where it is there. */
export function toggled(changes: readonly ModelChange[], change: ModelChange): readonly ModelChange[] {
  const key = keyOfChange(change);
  const rest = changes.filter((other) => keyOfChange(other) !== key);
  return rest.length < changes.length ? rest : [...changes, change];
}

/** The same changes with heads of one layer in one, sorted: a request is quicker, and has one form. */
export function merged(changes: readonly ModelChange[]): ModelChange[] {
  const groups = new Map<string, ModelChange>();
  for (const change of changes) {
    const { heads, ...rest } = change;
    const key = keyOfChange(rest);
    const known = groups.get(key);
    const all = heads && (!known || known.heads) ? [...new Set([...(known?.heads ?? []), ...heads])] : undefined;
    groups.set(key, { ...rest, ...(all && { heads: all.sort((a, b) => a - b) }) });
  }
  return [...groups.values()].sort((a, b) => a.layer - b.layer || keyOfChange(a).localeCompare(keyOfChange(b)));
}

/** One switch for each head of changes that came from elsewhere. */
export function switches(changes: readonly ModelChange[]): ModelChange[] {
  return changes.flatMap((change) =>
    change.do === "cut" || !change.heads ? [change] : change.heads.map((head) => ({ ...change, heads: [head] })),
  );
}

/** "1-8", "decoder 1-8": the heads that a change is of. */
export function placeOfChange({ stack, layer, heads }: ModelChange, several: boolean): string {
  const head = heads ? `${layer}-${heads.join()}` : `layer ${layer}`;
  return several && stack ? `${stack} ${head}` : head;
}

/** "cut 5-1: it → dog" */
export function changeWords(change: ModelChange, stack: PageStack | undefined, several = false): string {
  const name = `${CHANGE_WORDS[change.do][0]} ${placeOfChange(change, several)}`;
  const labels = (places: readonly number[] | undefined, of: readonly string[] | undefined) =>
    places ? places.map((at) => readable(of?.[at] ?? String(at), 16).text).join(" ") : "all";
  if (change.do === "cut" || change.queries) {
    const from = labels(change.queries, stack?.query.labels);
    return change.do === "cut" ? `${name}: ${from} → ${labels(change.keys, stack?.key.labels)}` : `${name}: ${from}`;
  }
  return change.do === "patch" && change.from ? `${name} from ${quoted(readable(change.from, 24).text)}` : name;
}

/** Changes at tokens, as they are in an edited text; `lost` are those whose tokens were edited. */
export function followed(changes: readonly ModelChange[], before: readonly PageStack[], after: readonly PageStack[]) {
  const kept: ModelChange[] = [];
  const lost: ModelChange[] = [];
  for (const change of changes) {
    const of = (stacks: readonly PageStack[]) => stacks.find(({ name }) => name === change.stack) ?? stacks[0];
    const [old, next] = [of(before), of(after)];
    const queries = change.queries?.flatMap(follower(old.query.pieces, next.query.pieces));
    const keys = change.keys?.flatMap(follower(old.key.pieces, next.key.pieces));
    if (queries?.length === 0 || keys?.length === 0) lost.push(change);
    else kept.push({ ...change, ...(queries && { queries }), ...(keys && { keys }) });
  }
  return { kept, lost };
}

/** Whether a change is at tokens, which have other numbers in another text. */
export function isAtTokens({ queries, keys }: ModelChange): boolean {
  return queries !== undefined || keys !== undefined;
}

/** "zero:2-0,3;cut:5-1q4k0": changes as an address holds them, in Python's form; another text stands after a tilde. */
export function writeChanges(changes: readonly ModelChange[]): string {
  return merged(changes)
    .map(({ do: kind, stack, layer, heads, queries, keys, from }) => {
      const lists = [heads && `-${heads.join()}`, queries && `q${queries.join()}`, keys && `k${keys.join()}`];
      const place = `${layer}${lists.filter(Boolean).join("")}`;
      const text = from === undefined ? "" : `~${encodeURIComponent(from).replaceAll("~", "%7E")}`;
      return `${kind}:${stack ? `${encodeURIComponent(stack)}:` : ""}${place}${text}`;
    })
    .join(";");
}

const LIST = "(\\d+(?:,\\d+)*)";
/** Made where it is read, so that bundles without a model can leave it out. */
const wordOfAddress = () =>
  new RegExp(`^([a-z]+):(?:([^:;~]+):)?(\\d+)(?:-${LIST})?(?:q${LIST})?(?:k${LIST})?(?:~([^;~]*))?$`);

/** The changes of an address, one switch for each head; what is none of them is left out. */
export function readChanges(text: string): ModelChange[] {
  return switches(text.split(";").flatMap((word) => readChange(word) ?? []));
}

function readChange(word: string): ModelChange | null {
  const [, kind, stack, layer, heads, queries, keys, from] = wordOfAddress().exec(word) ?? [];
  if (kind === undefined || !Object.hasOwn(CHANGE_WORDS, kind)) return null;
  const list = (numbers: string) => numbers.split(",").map(Number);
  return {
    do: kind as ModelChange["do"],
    layer: Number(layer),
    ...(stack && { stack: decoded(stack) }),
    ...(heads && { heads: list(heads) }),
    ...(queries && { queries: list(queries) }),
    ...(keys && { keys: list(keys) }),
    ...(from && { from: decoded(from) }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The line of Python that makes the shown record. */
export function pythonLine({ text = "", text_b, messages }: LiveInput, python: string): string {
  const given = messages ? [messages] : text_b === undefined ? [text] : [text, text_b];
  const texts = given.map(literal).join(", ");
  if (!python) return `record = hs.capture(model, tokenizer, ${texts})`;
  return `effect = hs.effect(model, tokenizer, ${texts}, ${python})`;
}
