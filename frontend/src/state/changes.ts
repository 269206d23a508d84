import type { LiveInput, ModelChange } from "../../types/live";
import type { PageStack } from "../../types/page";
import type { Side } from "../draw/tokens";
import type { Asked } from "../source/model";
import { literal } from "./call";
import { headPlace } from "./evidence";
import { follower } from "./selection";
import type { Store } from "./store";
import { decoded, quoted, readable } from "./words";

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

/** "cut 5-1: it → dog" */
export function changeWords(change: ModelChange, stack: PageStack | undefined, several = false): string {
  const head = change.heads ? `${change.layer}-${change.heads.join()}` : `layer ${change.layer}`;
  const name = `${CHANGE_WORDS[change.do][0]} ${several && change.stack ? `${change.stack} ` : ""}${head}`;
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

/** The line of Python that makes the shown record. */
export function pythonLine({ text = "", text_b, messages }: LiveInput, python: string): string {
  const given = messages ? [messages] : text_b === undefined ? [text] : [text, text_b];
  const texts = given.map(literal).join(", ");
  if (!python) return `record = hs.capture(model, tokenizer, ${texts})`;
  return `effect = hs.effect(model, tokenizer, ${texts}, ${python})`;
}

/** What a change would be of: heads of one layer, null for all of them, and the pieces that are chosen, null for none. */
export type Subject = ReturnType<typeof subjectOf>;

/** The heads and tokens that are looked at: what stands under the pointer goes before what is chosen. */
export function subjectOf(store: Store) {
  const stack = store.pieceStack.value;
  const pointed = store.peeked.value;
  const at =
    pointed === null
      ? { layer: store.layerNumber.value, heads: [stack.head_numbers[store.head.value]] }
      : { layer: headPlace(stack, pointed).layer, heads: [headPlace(stack, pointed).head] };
  const all = at.heads.length === stack.head_numbers.length && stack.head_numbers.length > 1;
  const { query, key } = store.pins.value;
  return {
    stack: stack.name,
    layer: at.layer,
    heads: all ? null : at.heads,
    query: query.length > 0 ? query.flatMap((token) => piecesOf(store, "query", token)) : null,
    key: key.length > 0 ? key.flatMap((token) => piecesOf(store, "key", token)) : null,
  };
}

/** The pieces of what is shown as one token. */
export function piecesOf({ merge }: Store, side: Side, token: number): number[] {
  const starts = merge.value?.[side].starts;
  return starts ? Array.from({ length: starts[token + 1] - starts[token] }, (_, at) => starts[token] + at) : [token];
}

interface ChangeFacts {
  /** Whether the model has several stacks. */
  readonly several: boolean;
  /** Whether the change is at the chosen query only; a cut always is. */
  readonly atTokens?: boolean;
  readonly from?: string;
}

/** A change of a subject. */
export function changeOf(kind: ModelChange["do"], subject: Subject, given: ChangeFacts): ModelChange {
  const { stack, layer, heads, query, key } = subject;
  const { several, atTokens, from } = given;
  return {
    do: kind,
    layer,
    ...(several && { stack }),
    ...(heads && { heads: [...heads] }),
    ...((kind === "cut" || atTokens) && query && { queries: [...query] }),
    ...(kind === "cut" && key && { keys: [...key] }),
    ...(from !== undefined && { from }),
  };
}

/** The head or link that an element of a view stands for; null where it is none. */
export function subjectAt(element: Element, store: Store): Subject | null {
  const now = subjectOf(store);
  const cell = element.closest<HTMLElement>("[data-tile]");
  const name = cell?.dataset.tile ?? "";
  const place = /^(\d+)-(\d+)$/.exec(name);
  const nowhere = { query: null, key: null };
  if (place) return { ...now, ...nowhere, layer: Number(place[1]), heads: [Number(place[2])] };
  const token = element.closest<HTMLElement>("[data-side][data-token]");
  if (token) {
    const side = token.dataset.side as Side;
    return { ...now, ...nowhere, [side]: piecesOf(store, side, Number(token.dataset.token)) };
  }
  const { query, key } = store.hover.peek();
  if (query === undefined || key === undefined || !element.closest("#view")) return null;
  return { ...now, query: piecesOf(store, "query", query), key: piecesOf(store, "key", key) };
}

/** What a click with Alt does to a subject: a link is cut, a head is silenced, at a query only there. */
export function quickChange(subject: Subject, several: boolean): ModelChange {
  return changeOf(subject.key ? "cut" : "zero", subject, { several, atTokens: true });
}

// What a model is asked, as the address of the page holds it: in the fragment, which is not sent to any server.

/** Longer texts do not fit into the addresses of all programs. */
export const MOST_IN_ADDRESS = 2000;

const TEXTS = ["text", "text_b", "target"] as const;

/** Parts of a fragment; no text where one is too long, and never a picture or a sound. */
export function writeAsked({ input, changes }: Asked): string {
  const texts: [string, string | undefined][] = TEXTS.map((name) => [name, input[name]]);
  const messages = input.messages && JSON.stringify(input.messages.map(({ role, content }) => [role, content]));
  const all = [...texts, ["messages", messages], ["changes", writeChanges(changes) || undefined]] as const;
  const given = all.filter(([name, text]) => text !== undefined && (name === "changes" || fits(text)));
  return given.map(([name, text]) => `${name}=${encode(text ?? "")}`).join("&");
}

/** Whether all of the texts are in the address. */
export function isInAddress({ input }: Asked): boolean {
  const messages = JSON.stringify(input.messages ?? []);
  return TEXTS.every((name) => fits(input[name] ?? "")) && fits(messages) && !input.image && !input.audio;
}

/** What a fragment asks; null where it says nothing to read. */
export function readAsked(fragment: string): Asked | null {
  const given = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  const input: LiveInput = {};
  for (const name of TEXTS) {
    const text = given.get(name);
    if (text !== null) input[name] = text;
  }
  const messages = readMessages(given.get("messages"));
  if (messages) input.messages = messages;
  if (Object.keys(input).length === 0) return null;
  return { input, changes: readChanges(given.get("changes") ?? "") };
}

function readMessages(text: string | null): LiveInput["messages"] | null {
  try {
    const read: unknown = JSON.parse(text ?? "null");
    if (!Array.isArray(read)) return null;
    return read.map((pair: unknown) => {
      const [role, content] = Array.isArray(pair) ? pair : [];
      return { role: String(role ?? "user"), content: String(content ?? "") };
    });
  } catch {
    return null;
  }
}

function fits(text = ""): boolean {
  return text.length <= MOST_IN_ADDRESS;
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3B", ";");
}
