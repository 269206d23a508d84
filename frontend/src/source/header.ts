import type { Page, PageArray, PageLayer, PageStack, PageTokens } from "../contract/page";
import { PageError } from "./errors";

/** The format of the contract that this viewer understands. */
export const PAGE_FORMAT = 2;

/** The header of a page from its JSON text, checked so that nothing behind it has to ask again. */
export function parseHeader(text: string): Page {
  let page: Page;
  try {
    page = JSON.parse(text) as Page;
  } catch (cause) {
    throw new PageError("The header of this page is not JSON: the file is damaged. Write it again.", { cause });
  }
  checkHeader(page);
  return page;
}

export function checkHeader(page: Page): void {
  const format: number = page?.format;
  if (format !== PAGE_FORMAT) {
    throw new PageError(
      `This page has format ${String(format)}, written by headscope ${String(page?.headscope)}; ` +
        `this viewer reads format ${PAGE_FORMAT}. Write the page again with one version of headscope.`,
    );
  }
  if (!page.stacks?.length) throw new PageError("This page has no attention in it: “stacks” is empty.");
  page.stacks.forEach(checkStack);
  Object.values(page.beside ?? {}).forEach(checkHeader);
}

function checkStack(stack: PageStack): void {
  if (!stack.layers?.length) throw new PageError(`The stack “${stack.name}” of this page has no layers.`);
  checkTokens(stack.query, `query tokens of “${stack.name}”`);
  checkTokens(stack.key, `key tokens of “${stack.name}”`);
  for (const layer of stack.layers) if (!layer.later) checkLayer(stack, layer);
}

function checkTokens(tokens: PageTokens, where: string): void {
  const count = tokens.labels.length;
  for (const list of [tokens.pieces, tokens.continues, tokens.special, tokens.segments]) {
    if (list.length !== count)
      throw new PageError(`The lists of the ${where} have ${count} and ${list.length} entries.`);
  }
  const words = tokens.continues.filter((goesOn, token) => !goesOn || token === 0).length;
  if ((tokens.words?.length ?? count) !== words)
    throw new PageError(`The ${where} make ${words} words, and ${tokens.words?.length ?? count} are named.`);
}

/** A layer's part of the header, checked as the rest of it was. */
export function checkLayer(stack: PageStack, layer: PageLayer): void {
  const { weights, scores } = layer;
  const [queries, keys] = [stack.query.labels.length, stack.key.labels.length];
  const where = `layer ${layer.layer} of “${stack.name}”`;
  if (!weights && !scores) throw new PageError(`In this page ${where} has neither weights nor queries and keys.`);
  const most = (array: PageArray) => Math.min(stack.heads, Math.max(1, array.shape[0]));
  const further = Object.values(layer.quantities ?? {});
  for (const array of further) {
    const all = array.axes.length === 2;
    const sizes = all ? [queries, keys] : [most(array), queries, keys];
    checkArray(array, all ? "query, key" : "head, query, key", sizes, `uint8, sqrt|uint8, signed|${FLOATS}`, where);
  }
  const norms = layer.value_norms;
  if (norms) checkArray(norms, "head, key", [most(norms), keys], FLOATS, where);
  if (weights) checkArray(weights, "head, query, key", [most(weights), queries, keys], "uint8, sqrt", where);
  if (!scores) return;
  const features = scores.queries.shape[2];
  checkArray(scores.queries, "head, query, feature", [most(scores.queries), queries, features], FLOATS, where);
  checkArray(scores.keys, "kv_head, key, feature", [most(scores.keys), keys, features], FLOATS, where);
}

const FLOATS = "float16, plain|float32, plain";

function checkArray(array: PageArray, axes: string, sizes: readonly number[], kinds: string, where: string): void {
  if (array.axes.join(", ") !== axes || array.shape.join() !== sizes.join()) {
    throw new PageError(
      `“${array.chunk}” of ${where} has axes ${array.axes.join(", ")} and shape ${array.shape.join(" × ")}; ` +
        `wanted are ${axes} and ${sizes.join(" × ")}.`,
    );
  }
  const kind = `${array.dtype}, ${array.encoding}`;
  if (!kinds.split("|").includes(kind)) {
    throw new PageError(`“${array.chunk}” of ${where} is ${kind}; wanted: ${kinds.replaceAll("|", " or ")}.`);
  }
}
