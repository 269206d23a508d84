import type { ModelChange } from "../contract/live";
import type { Side } from "../draw/columns";
import { headPlace } from "./evidence";
import type { Store } from "./store";

/** What a change would be of: heads of one layer, and tokens where some are chosen. */
export interface Subject {
  readonly stack: string;
  readonly layer: number;
  /** Null stands for all heads of the layer. */
  readonly heads: readonly number[] | null;
  /** Pieces; null where none is chosen. */
  readonly query: readonly number[] | null;
  readonly key: readonly number[] | null;
}

/** The heads and tokens that are looked at: what stands under the pointer goes before what is chosen. */
export function subjectOf(store: Store): Subject {
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
  const cell = element.closest<HTMLElement>("[data-tile], [data-pair-cell]");
  const name = cell?.dataset.tile ?? cell?.dataset.pairCell ?? "";
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
