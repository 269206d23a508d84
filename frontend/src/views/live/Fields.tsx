import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { LiveFacts, LiveInput, LiveMessage } from "../../../types/live";
import { Quiet } from "../../parts/controls";
import { messageOf } from "../../source/source";
import type { Live } from "../../state/live";
import { readable } from "../../state/words";

const LABELS = { text: "Text", text_b: "Second text", target: "Target text" } as const;
const PLACEHOLDERS = {
  text: "Type a text",
  text_b: "a second text, where the model reads pairs",
  target: "what the decoder reads; empty for what the model writes itself",
} as const;
const FURTHER = { text_b: "+ second text", target: "+ target text" } as const;

const TEXTS = ["text", "text_b", "target"] as const;

/** The fields of what the model reads. */
export function Fields({ live }: { live: Live }) {
  const { input } = live.asked.value;
  const { fields } = live.facts;
  if (input.messages) return <Messages live={live} messages={input.messages} />;
  return (
    <div class="live-fields stack">
      {TEXTS.filter((name) => fields.includes(name) && (name === "text" || input[name] !== undefined)).map((name) => (
        <TypedText
          key={name}
          live={live}
          name={name}
          label={LABELS[name]}
          placeholder={PLACEHOLDERS[name]}
          value={input[name] ?? ""}
          onText={(text) => live.type({ ...live.asked.peek().input, [name]: text })}
        />
      ))}
      <Files live={live} />
    </div>
  );
}

/** Fields that are there when they are wanted, and the text as a conversation. */
export function FurtherFields({ live }: { live: Live }) {
  const { input } = live.asked.value;
  const { fields, chat } = live.facts;
  if (input.messages) return null;
  return (
    <p class="live-further flex wrap">
      {(["text_b", "target"] as const).map(
        (name) =>
          fields.includes(name) && (
            <Quiet
              key={name}
              data-add-field={name}
              onClick={() => {
                const { [name]: had, ...rest } = input;
                live.ask(had === undefined ? { ...rest, [name]: "" } : rest);
              }}
            >
              {input[name] === undefined ? FURTHER[name] : `– ${LABELS[name].toLowerCase()}`}
            </Quiet>
          ),
      )}
      {chat && (
        <Quiet data-as-chat onClick={() => live.ask(asConversation(input, live.facts))}>
          as a conversation
        </Quiet>
      )}
    </p>
  );
}

/** The picture or sound beside a text or a conversation. */
function Files({ live }: { live: Live }) {
  const { facts } = live;
  const { input } = live.asked.value;
  const names = (["image", "audio"] as const).filter((name) => facts.fields.includes(name));
  return names.map((name) => (
    <FileField
      key={name}
      name={name}
      facts={facts}
      chosen={input[name] !== undefined}
      onChoose={(bytes) => live.ask({ ...live.asked.peek().input, [name]: bytes })}
      onProblem={(problem) => (live.problem.value = problem)}
    />
  ));
}

interface TypedTextProps {
  live: Live;
  name: string;
  label: string;
  placeholder: string;
  value: string;
  onText: (text: string) => void;
}

/** A field that is as high as its text; nothing is run as long as an input method composes. */
function TypedText({ live, name, label, placeholder, value, onText }: TypedTextProps) {
  const composing = useRef(false);
  return (
    <textarea
      rows={name === "text" ? 2 : 1}
      data-field={name}
      aria-label={label}
      placeholder={placeholder}
      spellcheck={false}
      dir="auto"
      value={value}
      onCompositionStart={() => {
        composing.current = true;
        live.hold();
      }}
      onCompositionEnd={(event) => {
        composing.current = false;
        onText(event.currentTarget.value);
      }}
      onInput={(event) => {
        if (composing.current) live.hold();
        else onText(event.currentTarget.value);
      }}
    />
  );
}

/** The text as the first question; the model's form has a place for its picture. */
function asConversation({ text = "", text_b: _, ...rest }: LiveInput, { picture_mark: mark }: LiveFacts): LiveInput {
  const content = mark ? text.replaceAll(mark, "").trim() : text;
  return { ...rest, messages: [{ role: "user", content }] };
}

function asText({ messages, ...rest }: LiveInput): LiveInput {
  return { ...rest, text: messages?.at(-1)?.content ?? "" };
}

/** The turns of a conversation. */
function Messages({ live, messages }: { live: Live; messages: readonly LiveMessage[] }) {
  const set = (next: readonly LiveMessage[]) => live.type({ ...live.asked.peek().input, messages: [...next] });
  const last = messages[messages.length - 1];
  return (
    <div class="live-fields stack" role="group" aria-label="Conversation">
      {messages.map(({ role, content }, at) => (
        <div class="live-turn stack top" key={at}>
          <select
            aria-label={`Who speaks in turn ${at + 1}`}
            value={role}
            onChange={(event) =>
              set(messages.map((turn, place) => (place === at ? { ...turn, role: event.currentTarget.value } : turn)))
            }
          >
            {["system", "document", "user", "assistant"].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <TypedText
            live={live}
            name={`turn-${at}`}
            label={`Turn ${at + 1}`}
            placeholder="what is said"
            value={content}
            onText={(text) => set(messages.map((turn, place) => (place === at ? { ...turn, content: text } : turn)))}
          />
        </div>
      ))}
      <p class="live-further flex wrap">
        <Quiet
          data-add-turn
          onClick={() => set([...messages, { role: last?.role === "user" ? "assistant" : "user", content: "" }])}
        >
          + turn
        </Quiet>
        {messages.length > 1 && <Quiet onClick={() => set(messages.slice(0, -1))}>– last turn</Quiet>}
        <Quiet data-as-text onClick={() => live.ask(asText(live.asked.peek().input))}>
          as a text
        </Quiet>
      </p>
      <Files live={live} />
    </div>
  );
}

interface FileFieldProps {
  name: keyof typeof FILES;
  facts: LiveFacts;
  /** Said before anything is shown. */
  lead?: string;
  chosen: boolean;
  onChoose: (base64: string) => void;
  onProblem: (problem: string) => void;
}

export const FILES = {
  image: { label: "Picture", accept: "image/*", one: "a picture" },
  audio: { label: "Sound", accept: "audio/*", one: "a sound" },
} as const;

/** A picture or a sound from a file; it goes to the model and nowhere else. */
export function FileField({ name, facts, lead, chosen, onChoose, onProblem }: FileFieldProps) {
  const called = useSignal("");
  const read = async (file: File | undefined) => {
    const { limits, sampling_rate: rate } = facts;
    const most = limits.picture_bytes > 0 ? limits.picture_bytes : Number.POSITIVE_INFINITY;
    if (!file) return;
    try {
      onChoose(await (name === "image" ? readPicture(file, most) : readSound(file, rate, most)));
      called.value = file.name;
    } catch (error) {
      onProblem(messageOf(error));
    }
  };
  return (
    <label class="choice live-file row muted wrap slim">
      <span>{lead ?? FILES[name].label}</span>
      <input
        type="file"
        data-field={name}
        accept={FILES[name].accept}
        onChange={(event) => void read(event.currentTarget.files?.[0])}
      />
      {chosen && <small>{readable(called.value || "chosen", 40).text}</small>}
    </label>
  );
}

// Pictures and sounds that a reader chooses, as a model is given them: made in the page, so that none of their many
// forms has to be read by Python.

/** Longer sides than this are shrunk: no model looks at more. */
const LONGEST_SIDE = 1536;
const READ_AS_THEY_ARE = ["image/png", "image/jpeg"];

/** A picture as PNG or JPEG in base64: as it is, or redrawn where it is of another kind or too large. */
async function readPicture(file: File, most: number): Promise<string> {
  if (READ_AS_THEY_ARE.includes(file.type) && file.size <= most) return base64Of(await file.arrayBuffer());
  const picture = await createImageBitmap(file).catch(() => {
    throw new Error(`“${file.name}” is no picture that this browser can read.`);
  });
  const part = Math.min(1, LONGEST_SIDE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * part));
  canvas.height = Math.max(1, Math.round(picture.height * part));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const drawn = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
  if (!drawn || drawn.size > most) throw new Error(`“${file.name}” is too large.`);
  return base64Of(await drawn.arrayBuffer());
}

/** A sound as WAV in base64, one channel of as many samples a second as the model hears. */
async function readSound(file: File, rate: number, most: number): Promise<string> {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer()).catch(() => {
    throw new Error(`“${file.name}” is no sound that this browser can read.`);
  });
  const channels = Array.from({ length: sound.numberOfChannels }, (_, at) => sound.getChannelData(at));
  const samples = Float32Array.from({ length: sound.length }, (_, at) => {
    return channels.reduce((sum, channel) => sum + channel[at], 0) / channels.length;
  });
  const file16 = await wavOf(samples, rate);
  if (file16.byteLength > most)
    throw new Error(`“${file.name}” lasts ${Math.round(sound.duration)} seconds: too long.`);
  return base64Of(file16);
}

/** Samples from -1 to 1 as a WAV file of one channel, 16 bits each. */
function wavOf(samples: Float32Array, rate: number): Promise<ArrayBuffer> {
  const sound = Int16Array.from(samples, (sample) => Math.round(Math.min(1, Math.max(-1, sample)) * 32767));
  const [pcm, both, size] = [0x10001, 0x100002, sound.byteLength];
  // RIFF, WAVE, "fmt ": PCM of one channel, samples and bytes a second, bytes and bits of a sample; "data".
  const head = [0x46464952, 36 + size, 0x45564157, 0x20746d66, 16, pcm, rate, 2 * rate, both, 0x61746164, size];
  return new Blob([Int32Array.from(head), sound]).arrayBuffer();
}

/** Bytes as text, a part at a time: a call takes only so many arguments. */
function base64Of(buffer: ArrayBuffer): string {
  const bytes = new Uint8Array(buffer);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary);
}
