import type { Page } from "../contract/page";
import { gunzip } from "./bytes";
import { PageError } from "./errors";
import { checkHeader } from "./header";
import type { Source } from "./source";

/** What is used of the model that anywidget gives. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, heard: (...heard: never[]) => void): void;
  off(event: string, heard: (...heard: never[]) => void): void;
  send(content: unknown): void;
}

/** What Python answers to a question for a chunk or a figure; the bytes, gzipped, are the only buffer. */
interface Answer {
  readonly type: "chunk" | "figure";
  readonly id: string;
  /** Why there are no bytes. */
  readonly error?: string;
}

interface Waiting {
  resolve(bytes: Uint8Array<ArrayBuffer>): void;
  reject(reason: PageError): void;
}

/** A kernel that runs something else answers afterwards, so only one that is gone should be given up. */
const PATIENCE = 60_000;

/** The source of a live widget: the header is a traitlet, chunks come as binary messages from the kernel. */
export function widgetSource(model: WidgetModel, patience = PATIENCE): Source & { close(): void } {
  const header = model.get("_header") as Page;
  checkHeader(header);
  const waiting = new Map<string, Waiting>();
  const onMessage = (answer: Answer, buffers: readonly DataView<ArrayBuffer>[]) => {
    const asked = answer?.type === "chunk" || answer?.type === "figure" ? waiting.get(answer.id) : undefined;
    if (!asked) return;
    waiting.delete(answer.id);
    if (answer.error) asked.reject(new PageError(answer.error));
    else asked.resolve(bytesOf(buffers[0]));
  };
  model.on("msg:custom", onMessage);
  const ask = async (question: Readonly<Record<string, unknown>>) => {
    // Several views of one model hear all answers, so an id must be nobody else's.
    const id = `${Date.now()}-${Math.random()}`;
    const packed = new Promise<Uint8Array<ArrayBuffer>>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      model.send({ ...question, id });
    });
    return gunzip(await inTime(packed, patience, () => waiting.delete(id)));
  };
  return {
    header,
    chunk: (name) => ask({ type: "chunk", name }),
    figure: (kind, options) => ask({ type: "figure", kind, options }),
    close: () => model.off("msg:custom", onMessage),
  };
}

function bytesOf({ buffer, byteOffset, byteLength }: DataView<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

async function inTime<Result>(promise: Promise<Result>, patience: number, late: () => void): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      late();
      reject(new PageError("The notebook's kernel does not answer. Run the cell again."));
    }, patience);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
