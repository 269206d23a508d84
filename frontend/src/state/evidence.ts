import type { PageMoved, PageQuantity, PageShown, PageStack } from "../../types/page";
import { kindOfLabel } from "../draw/kinds";
import { type Evidence, type LoadedKinds, NUMBERS } from "../source/heads";
import { amount, counted, magnitude, shortWeight } from "./words";

/** A pattern of one head with what stands behind it. */
export interface HeadLabel extends Readonly<Record<(typeof NUMBERS)[number], number>> {
  readonly pattern: number;
  readonly name: string;
  /** Held over many texts; as high, on one or too few texts to tell; or not told. */
  readonly status: "held" | "candidate" | "none";
  readonly threshold: number;
}

const STATUS = ["none", "candidate", "held"] as const;
export const ONCE = "seen on one text only";
export const CANDIDATE = "a candidate: too few texts to tell";

const rank = ({ status }: HeadLabel) => (status === "none" ? 1 : 0);

const known = new WeakMap<Evidence, Map<number, readonly HeadLabel[]>>();

/** Every pattern of a head that some text can show: those that are told, in their order, then the rest by score. */
export function labelsOf(evidence: Evidence, head: number): readonly HeadLabel[] {
  const heads = known.get(evidence) ?? new Map<number, readonly HeadLabel[]>();
  known.set(evidence, heads);
  const labels = heads.get(head) ?? readLabels(evidence, head);
  heads.set(head, labels);
  return labels;
}

function readLabels(evidence: Evidence, head: number): readonly HeadLabel[] {
  const { said, stack, status, numbers } = evidence;
  const heads = stack.layers.length * stack.heads;
  const patterns = said.patterns.length;
  const all = said.patterns.map(({ name, threshold }, pattern): HeadLabel => {
    const at = (number: number) => numbers[(number * patterns + pattern) * heads + head];
    const found = Object.fromEntries(NUMBERS.map((name, number) => [name, at(number)]));
    return {
      ...(found as Record<(typeof NUMBERS)[number], number>),
      pattern,
      name,
      threshold,
      status: STATUS[status[pattern * heads + head]] ?? "none",
    };
  });
  return all
    .filter(({ score }) => !Number.isNaN(score))
    .sort((a, b) => rank(a) - rank(b) || (a.status === "none" ? b.score - a.score : a.pattern - b.pattern));
}

/** What each head does over many texts: the kind of its first label that is one; else it changes with the text. */
export function kindsOverTexts(evidence: Evidence): NonNullable<LoadedKinds["over"]> {
  const count = evidence.stack.layers.length * evidence.stack.heads;
  const labels = Array.from({ length: count }, (_, head) =>
    labelsOf(evidence, head).find(({ status, name }) => status === "held" && kindOfLabel(name) !== undefined),
  );
  return {
    texts: evidence.said.texts,
    kinds: labels.map((label) => (label && kindOfLabel(label.name)) ?? "none"),
    scores: labels.map((label) => label?.score ?? 0),
  };
}

/** Layer and head as they are numbered in the model. */
export function headPlace(stack: PageStack, head: number): { layer: number; head: number } {
  return { layer: stack.layers[Math.floor(head / stack.heads)].layer, head: stack.head_numbers[head % stack.heads] };
}

/** "2-0" */
export function headName({ stack }: Pick<Evidence, "stack">, at: number): string {
  const { layer, head } = headPlace(stack, at);
  return `${layer}-${head}`;
}

/** What to look at for a label. */
export function shownFor({ said, stack }: Evidence, head: number, pattern: number): PageShown | undefined {
  const at = headPlace(stack, head);
  return said.shown.find((shown) => shown.pattern === pattern && shown.layer === at.layer && shown.head === at.head);
}

/** "next .65, 95 % interval .64 to .66 over 120 texts": a label as a sentence says it. */
export function labelWords({ name, score, low, high, texts, status }: HeadLabel, confidence: number): string {
  const least = `${name} ${shortWeight(score)}`;
  if (texts === 1) return `${least}, ${ONCE}`;
  const interval = `${Math.round(100 * confidence)} % interval ${shortWeight(low)} to ${shortWeight(high)}`;
  const told = `${least}, ${interval} over ${counted(texts, "text")}`;
  return status === "candidate" ? `${told}, ${CANDIDATE}` : told;
}

/** All told labels of a head as a sentence; empty where nothing is told. */
export function headWords(evidence: Evidence, head: number): string {
  return labelsOf(evidence, head)
    .filter(({ status }) => status !== "none")
    .map((label) => labelWords(label, evidence.said.confidence))
    .join("; ");
}

/** How far heads moved, as a quantity of whole heads. */
export function movedFacts({ label }: PageMoved): PageQuantity {
  return { name: "moved", label, explanation: label, signed: false, per: "head" };
}

/** ".21", ".004", "3e-5" */
export function distance(value: number): string {
  return value > 0 && value < 0.0005 ? magnitude(value) : amount(value);
}

/** How far one head moved, in words. */
export function movedWords({ values, within, changed }: PageMoved, layer: number, head: number): string {
  const value = values[layer][head];
  if (changed[layer][head]) return "changed on purpose";
  if (value === null) return "";
  return `moved ${distance(value)} nats${within[layer][head] ? ", within the spread" : ""}`;
}
