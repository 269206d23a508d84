import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Quiet } from "../../parts/controls";
import { saveMade } from "../../parts/files";
import { Icon } from "../../parts/legend";
import type { FigureKind } from "../../source/source";
import { figureCall, figureOptions } from "../../state/call";
import { isDrawing, keepHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { queryShown } from "../neuron/table";

const TYPES: readonly (readonly [FigureKind, type: string])[] = [
  ["svg", "image/svg+xml"],
  ["pdf", "application/pdf"],
  ["png", "image/png"],
];

/** The figure of what is seen: drawn by Python where there is one, else as the call that draws it. */
export function FigureMenu({ store }: { store: Store }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const said = useSignal("");
  const options = optionsOf(store);
  const call = figureCall(options, store.record);
  const { figure } = store;
  const { view, layer, heads, query, key } = store.selection.value;
  const name = `${view}-${layer}${heads?.length === 1 ? `-${heads[0]}` : ""}`;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(call);
      said.value = "copied";
    } catch {
      // Frames and files may not write to the clipboard; the text can be selected.
      said.value = "select and copy the text";
    }
  };
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
            {TYPES.map(([kind, type]) => (
              <button
                key={kind}
                class="boxed"
                data-figure={kind}
                onClick={() =>
                  saveMade(said, `${name}.${kind}`, async () => new Blob([await figure(kind, options)], { type }))
                }
              >
                {kind.toUpperCase()}
              </button>
            ))}
          </p>
        )}
        {!figure && <small>A figure for print (SVG, PDF, PNG) needs Python:</small>}
        <p class="figure-words flex apart top">
          <code data-figure-words>{call}</code>
          <Quiet onClick={copy}>copy</Quiet>
        </p>
        {Math.max(query.length, key.length) > 1 && (
          <small>A figure follows one pinned query and one key: the first.</small>
        )}
        <small role="status">{said.value}</small>
      </div>
    </details>
  );
}

function optionsOf(store: Store) {
  const { selection, dark, page, head, stack, full } = store;
  return figureOptions({
    // A figure without a head would be of the mean of all.
    selection: isDrawing(selection.value.view) ? keepHead(selection.value, full.value, stack.value) : selection.value,
    dark: dark.value,
    several: page.stacks.length > 1,
    head: stack.value.head_numbers[head.value],
    // Of words the first piece, by whose position Python finds them.
    query: store.pieceAt({ side: "query", token: queryShown(store) }),
  });
}
