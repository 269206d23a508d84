import type { Page, PageLayer, PageStack, PageTokens } from "../contract/page";
import { PageError } from "./errors";

/** The newest format of the contract that this viewer understands. */
export const PAGE_FORMAT = 1;

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
  if (!(format <= PAGE_FORMAT)) {
    throw new PageError(
      `This page has format ${String(format)}, written by headscope ${String(page?.headscope)}; ` +
        `this viewer reads format ${PAGE_FORMAT}. Write the page again with one version of headscope.`,
    );
  }
  if (!page.stacks?.length) throw new PageError("This page has no attention in it: “stacks” is empty.");
  page.stacks.forEach(checkStack);
}

function checkStack(stack: PageStack): void {
  if (!stack.layers?.length) throw new PageError(`The stack “${stack.name}” of this page has no layers.`);
  checkTokens(stack.query, `query tokens of “${stack.name}”`);
  checkTokens(stack.key, `key tokens of “${stack.name}”`);
  for (const layer of stack.layers) checkLayer(stack, layer);
}

function checkTokens(tokens: PageTokens, where: string): void {
  const count = tokens.labels.length;
  for (const list of [tokens.pieces, tokens.continues, tokens.special, tokens.segments]) {
    if (list.length !== count)
      throw new PageError(`The lists of the ${where} have ${count} and ${list.length} entries.`);
  }
}

function checkLayer(stack: PageStack, { layer, weights }: PageLayer): void {
  const wanted = [stack.heads, stack.query.labels.length, stack.key.labels.length];
  const axes = weights.axes.join(", ");
  if (axes !== "head, query, key" || weights.shape.join() !== wanted.join()) {
    throw new PageError(
      `The weights of layer ${layer} of “${stack.name}” have axes ${axes} and shape ${weights.shape.join(" × ")}; ` +
        `wanted are head, query, key and ${wanted.join(" × ")}.`,
    );
  }
  if (weights.dtype !== "uint8" || weights.encoding !== "sqrt") {
    throw new PageError(
      `The weights of layer ${layer} are ${weights.dtype}, ${weights.encoding}; wanted: uint8, sqrt.`,
    );
  }
}
