import { useSignal } from "@preact/signals";
import { pythonLine } from "../../state/changes";
import type { LiveParts } from "./LiveBar";

const FILES = { download: ["record", "safetensors"], page: ["page", "html"] } as const;

/** What is shown as a file, and as the lines of Python that make it. */
export function Keep({ live, store }: LiveParts) {
  const said = useSignal("");
  const { asked, opening } = live.answer.value;
  const line = pythonLine(asked.input, opening.python);
  const save = async (kind: keyof typeof FILES) => {
    said.value = "on its way …";
    try {
      const [name, ending] = FILES[kind];
      const { model } = live;
      const file = kind === "page" ? model.page(opening.id, store.selection.peek()) : model.file(opening.id);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await file);
      link.download = `${name}.${ending}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      said.value = `saved ${link.download}`;
    } catch (error) {
      said.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <div class="live-keep">
      <button class="live-go" data-keep="download" onClick={() => save("download")}>
        record (.safetensors)
      </button>
      <button class="live-go" data-keep="page" onClick={() => save("page")}>
        page (.html), opens without a model
      </button>
      <small role="status">{said.value}</small>
      <code class="live-python" data-python-line>
        {line}
      </code>
    </div>
  );
}
