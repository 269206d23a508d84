import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Side } from "../../draw/place";
import { withWords } from "../../draw/png";
import { Save } from "../../parts/icons";
import { snapshot } from "../../parts/snapshot";
import { PageError } from "../../source/errors";
import type { FigureKind } from "../../source/source";
import { chosenPair } from "../../state/chosenPair";
import { figureCall, figureCommand, figureOptions } from "../../state/figure";
import { isDrawing } from "../../state/places";
import { keepHead } from "../../state/selection";
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
  const doing = async (make: () => Promise<Uint8Array<ArrayBuffer>>, kind: FigureKind) => {
    said.value = "drawing …";
    try {
      save(await make(), kind, store);
      said.value = `saved ${fileName(kind, store)}`;
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
      <summary class="quiet" data-figure-menu>
        <Save /> Save as a figure
      </summary>
      <div class="figure-choices">
        {figure && (
          <p>
            Figure for print{" "}
            {KINDS.map((kind) => (
              <button key={kind} data-figure={kind} onClick={() => doing(() => figure(kind, options), kind)}>
                {kind.toUpperCase()}
              </button>
            ))}
          </p>
        )}
        {!figure && (
          <p>
            This picture{" "}
            <button data-figure="picture" onClick={() => doing(picture, "png")}>
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
    <p class="figure-words">
      <code data-figure-words={name}>{text}</code>
      <button class="quiet" onClick={() => onCopy(text)}>
        copy
      </button>
    </p>
  );
}

function optionsOf(store: Store) {
  const { selection, dark, page, heads, stack, full } = store;
  const { query, key } = chosenPair(store) ?? { query: 0, key: 0 };
  // Of words the first piece, by whose position Python finds them.
  const at = (side: Side, token: number) => store.pieceAt({ side, token });
  return figureOptions({
    // A figure without a head would be of the mean of all.
    selection: isDrawing(selection.value.view) ? keepHead(selection.value, full.value, stack.value) : selection.value,
    dark: dark.value,
    several: page.stacks.length > 1,
    head: stack.value.head_numbers[heads.value[0] ?? 0],
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

function save(bytes: Uint8Array<ArrayBuffer>, kind: FigureKind, store: Store): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: TYPES[kind] }));
  link.download = fileName(kind, store);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
