import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Side } from "../../draw/tokens";
import { bytesOf, saveFile } from "../../parts/files";
import { Icon } from "../../parts/legend";
import { type FigureKind, PageError } from "../../source/source";
import { figureCall, figureCommand, figureOptions } from "../../state/call";
import { isDrawing, keepHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { queryShown } from "../neuron/table";

const KINDS: readonly FigureKind[] = ["svg", "pdf", "png"];
const TYPES: Readonly<Record<FigureKind, string>> = {
  svg: "image/svg+xml",
  pdf: "application/pdf",
  png: "image/png",
};

/** The figure of what is seen: drawn by Python where there is one, else as a picture and as the call that draws it. */
export function FigureMenu({ store }: { store: Store }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const said = useSignal("");
  const options = optionsOf(store);
  const [call, command] = [figureCall(options, store.record), figureCommand(options, store.record)];
  const doing = async (make: () => Promise<BlobPart>, kind: FigureKind) => {
    said.value = "drawing …";
    try {
      const name = fileName(kind, store);
      saveFile(new Blob([await make()], { type: TYPES[kind] }), name);
      said.value = `saved ${name}`;
    } catch (error) {
      said.value = error instanceof PageError ? error.message : `this browser could not do it: ${String(error)}`;
    }
  };
  const picture = async () => {
    const stage = menu.current?.closest("[data-headscope]")?.querySelector<HTMLElement>(".stage, .stage-bare");
    if (!stage) throw new PageError("Nothing is shown yet.");
    return withWords(await snapshot(stage), words(store, call));
  };
  const copy = async (text: string) => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "copied";
    } catch {
      // Frames and files may not write to the clipboard; the text can be selected.
      said.value = "select and copy the text";
    }
  };
  const { figure } = store;
  return (
    <details
      class="figure-menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        // Escape lets go of what is pinned, but not from in here.
        event.stopPropagation();
        menu.current?.removeAttribute("open");
      }}
    >
      <summary class="quiet muted row" data-figure-menu>
        <Icon of="save" /> Save as a figure
      </summary>
      <div class="figure-choices stack">
        {figure && (
          <p>
            Figure for print{" "}
            {KINDS.map((kind) => (
              <button
                key={kind}
                class="boxed"
                data-figure={kind}
                onClick={() => doing(() => figure(kind, options), kind)}
              >
                {kind.toUpperCase()}
              </button>
            ))}
          </p>
        )}
        {!figure && (
          <p>
            This picture{" "}
            <button class="boxed" data-figure="picture" onClick={() => doing(picture, "png")}>
              PNG
            </button>
            <br />
            <small>A figure for print (SVG, PDF) needs Python:</small>
          </p>
        )}
        <Words text={call} onCopy={copy} name="call" />
        {!figure && command && <Words text={command} onCopy={copy} name="command" />}
        {manyPins(store) && <small>A figure follows one pinned query and one key: the first.</small>}
        <small role="status">{said.value}</small>
      </div>
    </details>
  );
}

function Words({ text, name, onCopy }: { text: string; name: string; onCopy: (text: string) => void }) {
  return (
    <p class="figure-words flex apart top">
      <code data-figure-words={name}>{text}</code>
      <button class="quiet muted" onClick={() => onCopy(text)}>
        copy
      </button>
    </p>
  );
}

function optionsOf(store: Store) {
  const { selection, dark, page, head, stack, full } = store;
  const { query, key } = chosenPair(store) ?? { query: 0, key: 0 };
  // Of words the first piece, by whose position Python finds them.
  const at = (side: Side, token: number) => store.pieceAt({ side, token });
  return figureOptions({
    // A figure without a head would be of the mean of all.
    selection: isDrawing(selection.value.view) ? keepHead(selection.value, full.value, stack.value) : selection.value,
    dark: dark.value,
    several: page.stacks.length > 1,
    head: stack.value.head_numbers[head.value],
    pair: {
      query: at("query", selection.value.view === "neuron" ? queryShown(store) : query),
      key: at("key", key),
    },
  });
}

function manyPins({ selection }: Store): boolean {
  return selection.value.query.length > 1 || selection.value.key.length > 1;
}

/** What the file of a picture says of itself. */
function words({ page, shown, quantity }: Store, call: string): Record<string, string> {
  const recipe = {
    made: "a picture of the live view; the call draws the figure for print",
    call,
    quantity: quantity.value.name,
    model: page.model.name,
    title: page.title,
    headscope: page.headscope,
    error_of_a_weight: shown.value?.layer.error,
  };
  return { Title: page.title, Software: `headscope ${page.headscope}`, Description: JSON.stringify(recipe) };
}

function fileName(kind: FigureKind, { selection }: Store): string {
  const { view, layer, heads } = selection.value;
  return `${view}-${layer}${heads?.length === 1 ? `-${heads[0]}` : ""}.${kind}`;
}

// An element as it is seen, as a PNG: its canvases as pictures, its words and boxes as the browser draws them.

const DENSITY = 2;
/** Characters that tokens may hold, in tooltips as they are, and XML may not. */
const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** The PNG of an element inside a shadow root, with the styles of that root. */
async function snapshot(element: HTMLElement): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height } = element.getBoundingClientRect();
  const [wide, high] = [Math.ceil(width), Math.ceil(height)];
  const inside = new XMLSerializer().serializeToString(standing(element, wide, high)).replace(NOT_XML, "\ufffd");
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}"><foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`;
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide * DENSITY, high * DENSITY];
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return bytesOf(canvas, TYPES.png);
}

/** A copy of the element with all its styles, for a document without a shadow root. */
function standing(element: HTMLElement, width: number, height: number): HTMLElement {
  const root = element.getRootNode() as ShadowRoot;
  const style = document.createElement("style");
  style.textContent = [...[...root.querySelectorAll("style")].map(outsideShadow), NO_SCROLLBARS].join("\n");
  const page = document.createElement("div");
  page.className = HOST;
  if (root.host instanceof HTMLElement) page.dataset.theme = root.host.dataset.theme;
  page.style.cssText = `width:${width}px;height:${height}px;overflow:hidden`;
  page.append(style, within(element, width, height));
  return page;
}

const HOST = "snapshot-host";
const NO_SCROLLBARS = "* { scrollbar-width: none }";

/** The text of a style element, for a document without a shadow root. */
function outsideShadow({ textContent }: Element): string {
  return (textContent ?? "").replace(/:host\(([^)]*)\)/g, `.${HOST}$1`).replaceAll(":host", `.${HOST}`);
}

/** A copy of the element inside copies of what it stands in, from which its styles follow. */
function within(element: HTMLElement, width: number, height: number): HTMLElement {
  let copy = seen(element);
  copy.style.cssText += `;width:${width}px;height:${height}px;margin:0;box-shadow:none;border-radius:0;animation:none`;
  for (let around = element.parentElement; around; around = around.parentElement) {
    const shell = around.cloneNode(false) as HTMLElement;
    shell.style.cssText += `;display:block;width:${width}px;padding:0;margin:0;border:0;min-height:0`;
    shell.append(copy);
    copy = shell;
  }
  return copy;
}

/** A copy with what cloning leaves behind: pixels of canvases, what was scrolled, and what was chosen. */
function seen(element: HTMLElement): HTMLElement {
  const copy = element.cloneNode(true) as HTMLElement;
  const pairs = [...element.querySelectorAll("*")].map((from, at) => [from, copy.querySelectorAll("*")[at]] as const);
  for (const [from, to] of pairs) {
    if (from.scrollTop > 0 && to instanceof HTMLElement) scrolled(from, to);
    if (from instanceof HTMLInputElement) to.toggleAttribute("checked", from.checked);
    if (from instanceof HTMLOptionElement) to.toggleAttribute("selected", from.selected);
    if (from instanceof HTMLCanvasElement) to.replaceWith(pixels(from));
  }
  return copy;
}

function scrolled({ scrollTop }: Element, to: HTMLElement): void {
  to.style.overflow = "hidden";
  for (const child of to.children) {
    if (child instanceof HTMLElement) child.style.cssText += `;position:relative;top:${-scrollTop}px`;
  }
}

/** What makes a canvas stand where it does: rules for canvases do not hold for the picture in its place. */
const PLACE = "position inset margin z-index grid-area display opacity transform border-radius".split(" ");

function pixels(canvas: HTMLCanvasElement): HTMLImageElement {
  const image = document.createElement("img");
  const style = getComputedStyle(canvas);
  const place = PLACE.map((name) => `${name}:${style.getPropertyValue(name)}`);
  if (canvas.width > 0 && canvas.height > 0) image.src = canvas.toDataURL();
  image.className = canvas.className;
  image.style.cssText = [...place, `width:${canvas.offsetWidth}px`, `height:${canvas.offsetHeight}px`].join(";");
  return image;
}

/** The pinned pair; what is not pinned is the last query, and the key it attends to most. */
function chosenPair(store: Store): Record<Side, number> | null {
  const [weights, pins] = [store.weights.value, store.pins.value];
  const { query: queries } = store.stack.value;
  if (!weights || store.shownStack.value !== store.stack.value) return null;
  const query = pins.query[0] ?? queries.labels.length - 1;
  const row = weights.row(store.head.value, query);
  return { query, key: pins.key[0] ?? row.indexOf(Math.max(...row)) };
}

// Words into the metadata of a PNG file: chunks of type iTXt (PNG specification, 11.3.3.4).

const HEADER_END = 33;

/** The file with these words in it, after its header. */
export function withWords(png: Uint8Array<ArrayBuffer>, words: Readonly<Record<string, string>>): Blob {
  const chunks = Object.entries(words).map(([keyword, text]) => textChunk(keyword, text));
  return new Blob([png.subarray(0, HEADER_END), ...chunks, png.subarray(HEADER_END)]);
}

function textChunk(keyword: string, text: string): Uint8Array<ArrayBuffer> {
  // Keyword, then five zeros: end of it, not compressed, method, no language, no translation.
  const data = new TextEncoder().encode(`iTXt${keyword}\0\0\0\0\0${text}`);
  const chunk = new Uint8Array(data.length + 8);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length - 4);
  chunk.set(data, 4);
  view.setUint32(data.length + 4, checksum(data));
  return chunk;
}

/** CRC-32, as PNG and zip have it. */
export function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
