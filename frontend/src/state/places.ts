import type { PageStack } from "../contract/page";
import type { View } from "./selection";

// Three places: all heads, one head in one of four drawings, and several heads side by side.

export const DRAWINGS = ["head", "matrix", "text", "neuron"] as const;
export type Drawing = (typeof DRAWINGS)[number];

/** From so many queries on lines cannot be told apart. */
export const FEW_QUERIES = 64;

export function isDrawing(view: View): view is Drawing {
  return (DRAWINGS as readonly string[]).includes(view);
}

/** The drawings of one head that a stack has: neurons only with queries and keys, a long text by sentences. */
export function drawingsOf({ layers, sentences }: PageStack): readonly Drawing[] {
  if (sentences) return ["matrix", "text"];
  const neurons = layers.some(({ scores, later, has }) => scores !== null || (later && has?.includes("score")));
  return neurons ? DRAWINGS : DRAWINGS.filter((drawing) => drawing !== "neuron");
}

/** How one head is drawn where nobody has chosen: the input decides. */
export function usualDrawing({ query, key, sentences }: PageStack): Drawing {
  if (query.areas && key.areas) return "text";
  // What of one text belongs to what of another is read from a table.
  if (!isOneText({ query, key }) && !query.areas && !key.areas) return "matrix";
  return query.labels.length < FEW_QUERIES && !sentences ? "head" : "matrix";
}

/** Whether queries and keys are the same tokens: no cross-attention. */
export function isOneText({ query, key }: Pick<PageStack, "query" | "key">): boolean {
  return query.pieces.length === key.pieces.length && query.pieces.every((piece, token) => piece === key.pieces[token]);
}
