import { useEffect, useRef } from "preact/hooks";
import { CHOICES, KIND_NAMES } from "../../../contract/values";
import { kindColor } from "../../draw/kinds";
import { Quiet } from "../../parts/controls";
import { KindIcon } from "../../parts/legend";
import type { Store } from "../../state/store";

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["?", "this sheet"],
  ["/", "find a token; Enter pins it, Enter again goes to the next"],
  ["[ ]", "the layer before, the layer after"],
  ["o", "overview of all heads"],
  ["a c", "a keeps this picture; c compares the kept ones, or the clearest heads"],
  ["p f", "p plays the layers as a film, f shows all heads as lines: both on black, to be saved"],
  ["w", "joins the pieces of words"],
  ["click", "pins a token; Shift adds one more, or a head of the overview to compare"],
  ["Ctrl-Z", "undoes a step, with Shift redoes it; so does Back"],
  ["arrows", "from token to token, from head to head; Enter pins or opens"],
  ["Esc", "unpins, closes"],
];

const KEYS_OF_MODEL: typeof KEYS = [
  ["x", "silences the head that has the focus, or the one that is shown; again undoes it"],
  ["Alt-click", "silences a head; cuts a token or a cell"],
  ["Tab", "from the text to the changes, to what else can be asked, to the heads; Enter presses"],
];

/** What the signs in the pictures are. */
const MARKS: readonly (readonly [mark: string, means: string])[] = [
  ["from, query", "the token that looks"],
  ["to, key", "the token that is looked at"],
  ["weight", "the share of its attention that a token gives to another; a row sums to 1"],
  [
    "31 ×",
    "from 200 tokens on: 31 times the even share, which is what each token would get if all that may be seen got the same",
  ],
  ["score", "what goes into the softmax; only differences within a row count"],
  ["sink", "a key that gets much of all attention, often [CLS], [SEP] or the first token"],
  ["value norm", "norm of what a key adds to the output at weight 1"],
  ["▒ hatched", "no value: masked, hidden, or a layer without attention"],
  ["– piece", "continues the word before"],
  ["␣ ↵ ·", "a space, a line break, a token that adds no letter"],
];

/** How the page is used and what its marks mean. */
export function Help({ store }: { store: Store }) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => root.current?.focus(), []);
  const close = () => (store.help.value = false);
  return (
    <div class="card help" ref={root} tabIndex={-1} role="dialog" aria-label="Help" data-help>
      <header>
        <strong>What you see and what you can do</strong>
        <Quiet data-help-close onClick={close}>
          close (Esc)
        </Quiet>
      </header>
      <p>
        For each token, each head of each layer shares out one unit of attention among the tokens. Thick lines, dark
        cells and long bars are large shares. A wide pattern on one text is an observation, not yet a property of the
        head.
      </p>
      <div class="help-columns stack">
        <List title="Keys" rows={OF_MODEL ? [...KEYS, ...KEYS_OF_MODEL] : KEYS} keys />
        <List title="Marks" rows={MARKS} />
        {store.stack.value.kinds && (
          <section>
            <h2>Colours in the overview</h2>
            <ul>
              {CHOICES.kind.map((kind) => (
                <li key={kind} class="stack" style={{ "--kind": kindColor(kind, store.dark.value) }}>
                  <KindIcon kind={kind} /> {KIND_NAMES[kind]}
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

type ListProps = { title: string; rows: readonly (readonly [string, string])[]; keys?: boolean };

function List({ title, rows, keys = false }: ListProps) {
  return (
    <section>
      <h2>{title}</h2>
      <dl>
        {rows.map(([name, means]) => (
          <div key={name} class="stack">
            <dt>{keys ? <kbd>{name}</kbd> : name}</dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
