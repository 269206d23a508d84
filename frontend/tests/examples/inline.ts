import { encoded } from "../../src/source/source";
import type { Example } from "./page";

/** Puts an example into a document in the way Python writes it into a page. */
export async function writeInline(document: Document, { page, chunks }: Example): Promise<void> {
  const header = script(document, "application/json", JSON.stringify(page));
  header.id = "headscope-page";
  for (const [name, bytes] of chunks) {
    const chunk = script(document, "application/octet-stream", toBase64(await gzip(bytes)));
    chunk.dataset.chunk = encoded(name);
  }
}

export async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new CompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const [packed] = await Promise.all([
    new Response(stream.readable).arrayBuffer(),
    writer.write(bytes),
    writer.close(),
  ]);
  return new Uint8Array(packed);
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function script(document: Document, type: string, text: string): HTMLScriptElement {
  const element = document.createElement("script");
  element.type = type;
  element.textContent = text;
  document.body.append(element);
  return element;
}
