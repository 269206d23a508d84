import type { Page, PageArray, PageLayer, PageStack, PageTokens } from "../../types/page";

export type FigureKind = "svg" | "pdf" | "png";

/** Options of Python's `figure`. */
export type FigureOptions = Readonly<Record<string, string | number | boolean | readonly number[] | readonly string[]>>;

/** Where a view gets its data from: a file, a notebook or a server. */
export interface Source {
  readonly header: Page;
  /** The source whose further record this is. */
  readonly root?: Source;
  /** Whether another may soon stand in its place: then nothing is loaded that nobody asked for. */
  readonly passing?: boolean;
  /** The bytes of one named chunk, unpacked. */
  chunk(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** The file of a figure that Python draws; only where there is a Python. */
  figure?(kind: FigureKind, options: FigureOptions): Promise<Uint8Array<ArrayBuffer>>;
}

/** Something is wrong with the page itself; the message is shown to the reader. */
export class PageError extends Error {
  override readonly name = "PageError";
}

/** What is said of anything that went wrong. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A chunk's name as a page and an address can hold it: a stack may be called anything. */
export function encoded(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** The source of a further record of a page, or the page's own where it has no name. */
export function sourceBeside(source: Source, name: string): Source {
  if (!name) return source;
  const header = source.header.beside?.[name];
  if (!header) throw new PageError(`This page has no record “${name}”.`);
  return { header, root: source, chunk: (chunk) => source.chunk(`beside/${name}/${chunk}`) };
}

type Bytes = Uint8Array<ArrayBuffer>;

export function fromBase64(text: string): Bytes {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Bytes }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function gunzip(bytes: Bytes): Promise<Bytes> {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const [unpacked] = await Promise.all([
    new Response(stream.readable).arrayBuffer(),
    writer.write(bytes),
    writer.close(),
  ]);
  return new Uint8Array(unpacked);
}

/** Base64 of gzip, as chunks stand in a page. */
export async function unpack(name: string, text: string): Promise<Bytes> {
  try {
    return await gunzip(fromBase64(text.trim()));
  } catch (cause) {
    throw new PageError(`The data “${name}” in this page cannot be unpacked: the file is damaged. Write it again.`, {
      cause,
    });
  }
}

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

const DOTS = /(?:^|\/)\.\.?(?:\/|$)/;

/**
 * The source of a page that a server of ours shows: header and chunks are asked for when they are needed. The token
 * that the server knows its page by travels in a header, which no other page can send.
 */
export async function httpSource(base: string, token: string): Promise<Source> {
  const asked = answering((...request) => fetch(...request));
  const answer = (address: string) => asked(address, { headers: { "X-Headscope-Token": token } });
  const header = await (await answer(`${base}header.json`)).json();
  checkHeader(header);
  return { header, ...readingAt(base, answer) };
}

/** Chunks and figures of a record that stands at an address. */
export function readingAt(base: string, answer: (address: string) => Promise<Response>) {
  const bytes = async (address: string) => new Uint8Array(await (await answer(address)).arrayBuffer());
  return {
    // Dots between slashes would lead out of the folder.
    chunk: (name: string) => bytes(`${base}chunk/${DOTS.test(name) ? encodeURIComponent(name) : encoded(name)}`),
    figure: (kind: FigureKind, options: FigureOptions) =>
      bytes(`${base}figure/${kind}?options=${encodeURIComponent(JSON.stringify(options))}`),
  } satisfies Omit<Source, "header">;
}

/** What the server said in place of an answer. */
export class ModelError extends PageError {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Sends a request: `fetch`, or what asks a kernel instead. */
export type Fetch = (address: string, options: RequestInit) => Promise<Response>;

/** The answers of a server of ours; what it says in place of one is thrown. */
export function answering(send: Fetch): Fetch {
  return async (address, options) => {
    let response: Response;
    try {
      response = await send(address, options);
    } catch (cause) {
      if (options.signal?.aborted || cause instanceof PageError) throw cause;
      throw new PageError("The server does not answer: it has ended. Start `headscope serve` again.", { cause });
    }
    if (response.ok) return response;
    throw new ModelError(refusal(await response.text(), response.status, address), response.status);
  };
}

/** What an answer without success says, as JSON or as text. */
function refusal(text: string, status: number, address: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: string };
    if (error) return error;
  } catch {
    // A server between here and ours answers in its own words.
  }
  if (status === 403) return "The server does not know this page: open the address that `headscope serve` printed.";
  return text.length > 0 && text.length < 300 ? text : `The server answered ${status} when asked for “${address}”.`;
}

/** What is used of the model that anywidget gives. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, heard: (...heard: never[]) => void): void;
  off(event: string, heard: (...heard: never[]) => void): void;
  send(content: unknown): void;
}

/** A kernel that runs something else answers afterwards, so only one that is gone should be given up. */
const PATIENCE = 60_000;

/** The source of a live widget: the header is a traitlet, all else is asked of the kernel, which answers packed. */
export function widgetSource(model: WidgetModel, patience = PATIENCE): Source & { close(): void } {
  const header = model.get("_header") as Page;
  checkHeader(header);
  const { ask, close } = kernelFetch(model, patience);
  const { chunk, figure } = readingAt("", (path) => answering(ask)(path, {}));
  return {
    header,
    chunk: async (name) => gunzip(await chunk(name)),
    figure: async (kind, options) => gunzip(await figure(kind, options)),
    close,
  };
}

/** What the kernel sends of an answer; its only buffer holds the next bytes. */
type Part = { readonly type: "answer"; readonly id: string; readonly status: number; readonly more: boolean };

interface Waiting {
  begin(answer: Response): void;
  stream: ReadableStreamDefaultController<Bytes>;
  begun: boolean;
  body: ReadableStream<Bytes>;
}

/** `fetch` for a widget: what a page asks its server, the kernel is asked in messages; for so many milliseconds. */
export function kernelFetch(model: WidgetModel, patience?: number) {
  const waiting = new Map<string, Waiting>();
  const onMessage = (part: Part, buffers: readonly DataView<ArrayBuffer>[]) => {
    const asked = part?.type === "answer" ? waiting.get(part.id) : undefined;
    if (!asked) return;
    const [{ buffer, byteOffset, byteLength }] = buffers;
    if (byteLength > 0) asked.stream.enqueue(new Uint8Array(buffer, byteOffset, byteLength));
    if (!part.more) {
      asked.stream.close();
      waiting.delete(part.id);
    }
    if (!asked.begun) asked.begin(new Response(asked.body, { status: part.status }));
    asked.begun = true;
  };
  model.on("msg:custom", onMessage);
  const ask: Fetch = (address, { body, signal } = {}) =>
    new Promise<Response>((begin, refuse) => {
      // Several views of one model hear all answers, so an id must be nobody else's.
      const id = `${Date.now()}-${Math.random()}`;
      let controller: Waiting["stream"] | undefined;
      const stream = new ReadableStream<Bytes>({
        start: (given) => (controller = given),
      });
      if (!controller) throw new PageError("This browser cannot read streams.");
      const asked: Waiting = { begin, stream: controller, begun: false, body: stream };
      waiting.set(id, asked);
      if (patience !== undefined) setTimeout(() => waiting.delete(id) && refuse(GONE_KERNEL), patience);
      signal?.addEventListener("abort", () => {
        if (!waiting.delete(id)) return;
        model.send({ type: "stop", id });
        const ended = new DOMException("No longer wanted", "AbortError");
        if (asked.begun) asked.stream.error(ended);
        else refuse(ended);
      });
      model.send({ type: "ask", id, path: address, ...(body !== undefined && { body }) });
    });
  return { ask, close: () => model.off("msg:custom", onMessage) };
}

const GONE_KERNEL = new PageError("The notebook's kernel does not answer. Run the cell again.");

const KEPT_AS = "headscope-token";

/**
 * Takes the token out of the address, as addresses are copied and kept, and keeps it for a reload. Unlike a cookie,
 * session storage belongs to this port alone, and to this tab.
 */
export function takeToken(): string {
  const given = new URLSearchParams(location.search).get("token");
  if (given !== null) history.replaceState(null, "", location.pathname + location.hash);
  try {
    if (given !== null) sessionStorage.setItem(KEPT_AS, given);
    return given ?? sessionStorage.getItem(KEPT_AS) ?? "";
  } catch {
    // A reader may forbid storage: then the page works until it is reloaded.
    return given ?? "";
  }
}
