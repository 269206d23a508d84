import type * as live from "../../types/live";
import { answering, checkHeader, encoded, type Fetch, ModelError, PageError, readingAt, type Source } from "./source";

/** What a model is asked: something to read, and changes of its heads. */
export type Asked = { readonly input: live.LiveInput; readonly changes: readonly live.ModelChange[] };

/** A record that a model made, and what it said. */
export type Answered = { readonly asked: Asked; readonly opening: live.LiveOpening; readonly source: Source };

/** A model behind a server of ours. Each call ends, with an error, when its signal says so. */
export type Model = ReturnType<typeof httpModel>;

/** The status of a record that the server no longer keeps. */
export const GONE = 410;

/**
 * The model of a server: what it is asked goes there as JSON, with the token in a header.
 *
 * @param page - a random name of this tab: of each tab only the newest question is answered.
 */
export function httpModel(base: string, token: string, page: string, send: Fetch = (...request) => fetch(...request)) {
  const known = { "X-Headscope-Token": token };
  const beside = `${page}-beside`;
  const answerTo = answering(send);
  const get = (address: string) => answerTo(address, { headers: known });
  const post = (path: string, question: unknown, signal?: AbortSignal) =>
    answerTo(`${base}${path}`, {
      method: "POST",
      headers: { ...known, "Content-Type": "application/json" },
      body: JSON.stringify(question),
      ...(signal && { signal }),
    });
  async function ask(asked: Asked, looking: live.LiveLooking, signal?: AbortSignal, more = {}): Promise<Answered> {
    const question: live.LiveQuestion = { page, input: asked.input, changes: [...asked.changes], looking, ...more };
    return answered(asked, await openingIn(await post("ask", question, signal)));
  }
  /** Two records beside each other, which the server keeps. */
  async function compare(a: Answered, b: Answered, looking: live.LiveLooking, signal: AbortSignal): Promise<Answered> {
    const question: live.CompareQuestion = { page: beside, a: a.opening.id, b: b.opening.id, looking };
    return answered(b.asked, await openingIn(await post("compare", question, signal)));
  }
  /** A record as a source: what came with the answer, and all else from the server. */
  function answered(asked: Asked, { opening, chunks }: Unpacked): Answered {
    checkHeader(opening.header);
    let from = readingAt(`${base}record/${opening.id}/`, get);
    let again: Promise<void> | undefined;
    // The server keeps a few records only; the same question makes the same record.
    const askAgain = async () => {
      const next = await openingIn(await post("ask", { page: `${page}-again`, ...asked, looking: {} }));
      from = readingAt(`${base}record/${next.opening.id}/`, get);
    };
    const kept = async <Result>(read: () => Promise<Result>): Promise<Result> => {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof ModelError) || error.status !== GONE) throw error;
        again ??= askAgain().finally(() => (again = undefined));
        await again;
        return read();
      }
    };
    const source: Source = {
      header: opening.header,
      passing: true,
      chunk: async (name) => chunks.get(name) ?? kept(() => from.chunk(name)),
      figure: (kind, options) => kept(() => from.figure(kind, options)),
    };
    return { asked, opening, source };
  }
  return {
    ask,
    /** The same question to another text or to the second model; what the page itself asks goes on meanwhile. */
    askBeside: (asked: Asked, second: boolean, looking: live.LiveLooking, signal: AbortSignal) =>
      ask(asked, looking, signal, { page: beside, second }),
    compare,
    facts: async (): Promise<live.LiveFacts> => (await get(`${base}model.json`)).json(),
    /** The record of an id, such as one that was written. */
    async opened(id: string, asked: Asked, looking: live.LiveLooking): Promise<Answered> {
      const words = encodeURIComponent(JSON.stringify(looking));
      return answered(asked, await openingIn(await get(`${base}record/${id}/opening?looking=${words}`)));
    },
    write: (question: Omit<live.WriteQuestion, "page">, signal: AbortSignal) =>
      streamed<live.WrittenToken | live.WriteEnd>(post("write", { page, ...question }, signal)),
    answer: (question: Omit<live.AnswerQuestion, "page">, signal: AbortSignal) =>
      streamed<live.WrittenToken | live.AnswerEnd>(post("answer", { page, ...question }, signal)),
    why: (question: Omit<live.WhyTokenQuestion, "page">, signal: AbortSignal) =>
      streamed<live.MattersDone | live.WhyEnd>(post("why", { page, ...question }, signal)),
    attended: (question: Omit<live.AttendedQuestion, "page">, signal: AbortSignal) =>
      streamed<live.AttendedAnswer>(post("attended", { page, ...question }, signal)),
    matters: (question: Omit<live.MattersQuestion, "page">, signal: AbortSignal) =>
      streamed<live.MattersDone | live.MattersValues>(post("matters", { page, ...question }, signal)),
    /** The mean maps of the heads over the texts of an atlas. */
    atlas: async (): Promise<live.LiveAtlas> => (await get(`${base}atlas.json`)).json(),
    /** What each layer would say. */
    lens: async (question: Omit<live.LensQuestion, "page">): Promise<live.LensAnswer> =>
      (await post("lens", { page, ...question })).json(),
    /** The file of a record. */
    file: async (id: string): Promise<Blob> => (await get(`${base}record/${encoded(id)}/download`)).blob(),
    /** One page of a record, which opens with a selection. */
    page: async (id: string, selection: object): Promise<Blob> => {
      const words = encodeURIComponent(JSON.stringify(selection));
      return (await get(`${base}record/${encoded(id)}/page?selection=${words}`)).blob();
    },
  };
}

type Unpacked = { readonly opening: live.LiveOpening; readonly chunks: ReadonlyMap<string, Uint8Array<ArrayBuffer>> };

/** An answer in bytes: the length of a JSON text, the text, and the chunks that it names. */
export async function openingIn(response: Response): Promise<Unpacked> {
  const bytes = await response.arrayBuffer();
  const length = bytes.byteLength < 4 ? Number.POSITIVE_INFINITY : new DataView(bytes).getUint32(0, true);
  if (4 + length > bytes.byteLength) throw new PageError("The server's answer ends too early. Ask again.");
  const opening = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as live.LiveOpening;
  const chunks = new Map<string, Uint8Array<ArrayBuffer>>();
  let at = 4 + length;
  for (const [name, size] of opening.chunks) {
    // A copy: numbers of four bytes have to begin at a multiple of four.
    chunks.set(name, new Uint8Array(bytes.slice(at, at + size)));
    at += size;
  }
  if (at > bytes.byteLength) throw new PageError("The server's answer ends too early. Ask again.");
  return { opening, chunks };
}

/** The lines of an answer as they come; one that says what went wrong is thrown. */
async function* streamed<Line extends object>(asked: Promise<Response>): AsyncGenerator<Line> {
  const { body, status } = await asked;
  for await (const text of body ? linesOf(body) : []) {
    const said = JSON.parse(text) as Line | { error: string };
    if ("error" in said) throw new ModelError(said.error, status);
    yield said;
  }
}

async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line.trim());
  }
  if (rest.trim()) yield rest;
}
