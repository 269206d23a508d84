import { PageError } from "./errors";
import type { WidgetModel } from "./widget";

/** What the kernel sends of an answer; its only buffer holds the next bytes. */
interface Part {
  readonly type: "answer";
  readonly id: string;
  readonly status: number;
  readonly more: boolean;
}

interface Waiting {
  begin(answer: Response): void;
  stream: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  begun: boolean;
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** `fetch` for a widget: what a page asks its server, the kernel is asked in messages. */
export function kernelFetch(model: WidgetModel) {
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
  const ask = (address: string, { body, signal }: RequestInit = {}) =>
    new Promise<Response>((begin, refuse) => {
      // Several views of one model hear all answers, so an id must be nobody else's.
      const id = `${Date.now()}-${Math.random()}`;
      let controller: Waiting["stream"] | undefined;
      const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
        start: (given) => {
          controller = given;
        },
      });
      if (!controller) throw new PageError("This browser cannot read streams.");
      const asked: Waiting = { begin, stream: controller, begun: false, body: stream };
      waiting.set(id, asked);
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
