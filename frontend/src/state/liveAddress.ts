import type { LiveInput } from "../contract/live";
import type { Asked } from "../source/model";
import { readChanges, writeChanges } from "./changes";

// What a model is asked, as the address of the page holds it: in the fragment, which is not sent to any server.

/** Longer texts do not fit into the addresses of all programs. */
export const MOST_IN_ADDRESS = 2000;

const TEXTS = ["text", "text_b", "target"] as const;

/** Parts of a fragment; no text where one is too long, and never a picture or a sound. */
export function writeAsked({ input, changes }: Asked): string {
  const texts: [string, string | undefined][] = TEXTS.map((name) => [name, input[name]]);
  const messages = input.messages && JSON.stringify(input.messages.map(({ role, content }) => [role, content]));
  const all = [...texts, ["messages", messages], ["changes", writeChanges(changes) || undefined]] as const;
  const given = all.filter(([name, text]) => text !== undefined && (name === "changes" || fits(text)));
  return given.map(([name, text]) => `${name}=${encode(text ?? "")}`).join("&");
}

/** Whether all of the texts are in the address. */
export function isInAddress({ input }: Asked): boolean {
  const messages = JSON.stringify(input.messages ?? []);
  return TEXTS.every((name) => fits(input[name] ?? "")) && fits(messages) && !input.image && !input.audio;
}

/** What a fragment asks; null where it says nothing to read. */
export function readAsked(fragment: string): Asked | null {
  const given = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  const input: LiveInput = {};
  for (const name of TEXTS) {
    const text = given.get(name);
    if (text !== null) input[name] = text;
  }
  const messages = readMessages(given.get("messages"));
  if (messages) input.messages = messages;
  if (Object.keys(input).length === 0) return null;
  return { input, changes: readChanges(given.get("changes") ?? "") };
}

function readMessages(text: string | null): LiveInput["messages"] | null {
  try {
    const read: unknown = JSON.parse(text ?? "null");
    if (!Array.isArray(read)) return null;
    return read.map((pair: unknown) => {
      const [role, content] = Array.isArray(pair) ? pair : [];
      return { role: String(role ?? "user"), content: String(content ?? "") };
    });
  } catch {
    return null;
  }
}

function fits(text = ""): boolean {
  return text.length <= MOST_IN_ADDRESS;
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3B", ";");
}
