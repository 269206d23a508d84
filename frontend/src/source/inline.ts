import { unpack } from "./bytes";
import { encoded } from "./chunkName";
import { PageError } from "./errors";
import { parseHeader } from "./header";
import type { Source } from "./source";

/** The source of a self-contained page: header and chunks stand in inert script elements. */
export function inlineSource(root: ParentNode): Source {
  const header = parseHeader(scriptText(root, "#headscope-page", "header"));
  return {
    header,
    chunk: async (name) => unpack(name, scriptText(root, `script[data-chunk="${encoded(name)}"]`, name)),
  };
}

function scriptText(root: ParentNode, selector: string, name: string): string {
  const text = root.querySelector(selector)?.textContent;
  if (text == null)
    throw new PageError(`The data “${name}” is missing in this page: the file is incomplete. Write it again.`);
  return text;
}
