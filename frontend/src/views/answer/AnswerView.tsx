import { type ComponentChildren, Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { LOOKED, NEEDED } from "../../../contract/values";
import type { AnswerPicture } from "../../../types/answer";
import { Check, walkTiles } from "../../parts/controls";
import * as answer from "../../state/partNumbers";
import { directionOf } from "../../state/words";
import { AnswerHeads, Between } from "./AnswerHeads";
import { Heat } from "./Heat";

/** Sentences of a folded part, and parts of a prompt of many. */
const [SENTENCES, PARTS] = [2, 24];
/** Part of the strongest ink from which on a token has some, and how dark the strongest is. */
const [FAINT, DARKEST] = [0.12, 0.46];

/** The hue of what was looked at where something stands on it, on light and on dark paper. */
export const MARKER = ["#d8a400", LOOKED[1]] as const;

/** What is shown of an answer. */
export interface Shown {
  readonly data: answer.AnswerData;
  /** The words of the answer that numbers are the mean over, and the one that is chosen. */
  readonly words: readonly number[];
  readonly word: number;
  /** 0 for the mean over heads, else the place of a head among the tiles, from 1. */
  readonly head: number;
  readonly dark: boolean;
}

type AnswerProps = { picture: AnswerPicture; dark: boolean; children?: ComponentChildren };

/** An answer: its words, the prompt part by part with what was looked at and needed, and the heads that look at it. */
export function AnswerView({ picture, dark, children }: AnswerProps) {
  const data = useMemo(() => answer.readAnswer(picture), [picture]);
  const [chosen, setWord] = useState(-1);
  const [chosenHead, setHead] = useState(0);
  const [pointed, setPointed] = useState(-1);
  const [relative, setRelative] = useState(false);
  const word = chosen < data.words.length ? chosen : -1;
  const head = chosenHead <= data.heads.length ? chosenHead : 0;
  const words = useMemo(() => (word < 0 ? data.every : [word]), [data, word]);
  const shown: Shown = { data, words, word, head, dark };
  const [first, ...more] = data.says;
  const named = (parts: readonly number[]) => parts.map((part) => data.parts[part].name);
  const colors = { "--look": LOOKED[dark ? 1 : 0], "--need": NEEDED[dark ? 1 : 0], "--marker": MARKER[dark ? 1 : 0] };
  const heated = { ...shown, word: pointed < 0 ? word : pointed };
  const heat = (part: number) => <Heat shown={heated} part={part} relative={relative} />;
  return (
    <div class="answer" style={colors} data-answer-view>
      {children}
      <p class="answer-says">
        <Marked text={first} names={named(data.needed[0])} mark="need" />{" "}
        {more.map((text, at) => (
          <small key={text} class="muted">
            <Marked text={text} names={at > 0 ? [] : named(data.candidates)} mark="look" />{" "}
          </small>
        ))}
      </p>
      <div class="row wrap answer-asked">
        <span class="muted" dir="auto">
          {data.question}
        </span>
        <span aria-hidden="true">→</span>
        <Words data={data} word={word} onChoose={setWord} onPoint={setPointed} />
      </div>
      {data.words.length > 0 && (
        <div class="answer-body stack top">
          <section class="card slim" aria-label="The prompt, part by part">
            <h2>{head > 0 ? `What head ${data.heads[head - 1]} looked at` : "The prompt, part by part"}</h2>
            <Legend shown={shown} />
            {data.pictures.length > 0 && data.words.length > 1 && (
              <Check
                name="data-relative"
                label="heat: more (blue) or less (orange) than the mean over all words"
                checked={relative}
                onChange={setRelative}
              />
            )}
            <Parts shown={shown} heat={heat} />
          </section>
          <div class="stack answer-side slim">
            <AnswerHeads shown={shown} onHead={setHead} />
            <Between shown={shown} />
          </div>
        </div>
      )}
      <details class="answer-tables">
        <summary>numbers, and how they were measured</summary>
        <div dangerouslySetInnerHTML={{ __html: data.tables }} />
      </details>
    </div>
  );
}

/** A sentence with the names of parts in the colour of what is said of them. */
function Marked({ text, names, mark }: { text: string; names: readonly string[]; mark: "look" | "need" }) {
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const each = text.split(
    new RegExp(`(?<![\\p{L}\\p{N}])(${["“[^”]*”", ...escaped].join("|")})(?![\\p{L}\\p{N}])`, "u"),
  );
  return (
    <>
      {each.map((piece, at) => (
        <bdi key={at} class={at % 2 && !piece.startsWith("“") ? `answer-${mark}` : ""} dir={at % 2 ? "auto" : "ltr"}>
          {piece}
        </bdi>
      ))}
    </>
  );
}

type WordsProps = {
  data: answer.AnswerData;
  word: number;
  onChoose: (at: number) => void;
  onPoint: (at: number) => void;
};

function Words({ data, word, onChoose, onPoint }: WordsProps) {
  const button = (at: number, text: string, odds = Math.exp(data.logs[at])) => (
    <button
      key={at}
      class="answer-word boxed"
      data-word={at}
      aria-pressed={word === at}
      tabIndex={word === at || data.words.length === 1 ? 0 : -1}
      title={at < 0 ? undefined : `probability ${answer.shareText(odds)}`}
      style={{ "--odds": odds }}
      onClick={() => onChoose(at)}
      onPointerEnter={() => onPoint(at)}
      onPointerLeave={() => onPoint(-1)}
    >
      {text}
    </button>
  );
  return (
    <div
      class="flex wrap answer-words"
      role="group"
      dir={directionOf({ labels: data.words, special: data.words.map(() => false) })}
      aria-label="Words of the answer"
      onKeyDown={(event) => walkTiles(event, data.words.length + 1, "[data-word]")}
    >
      {data.words.length > 1 && button(-1, "all words", 0)}
      {data.words.map((text, at) => button(at, text))}
    </div>
  );
}

function Legend({ shown: { data, word, head } }: { shown: Shown }) {
  const [only = word] = data.words.length === 1 ? [0] : [];
  const of = only < 0 ? "mean over the words of the answer" : `when “${data.words[only]}” was written`;
  const heads = head > 0 ? `head ${data.heads[head - 1]}` : `mean over ${data.mean}`;
  const exactly = head < data.inked ? "ink: where exactly" : "ink: where exactly, mean over heads";
  return (
    <p class="fine flex wrap apart answer-legend">
      <span>{`${of}, ${heads}; ${exactly}`}</span>
      <span>
        <i class="answer-look" /> looked: share of {data.quantity} <s /> even share{" "}
        <span hidden={!data.gone}>
          <i class="answer-need" /> needed: probability lost when it is {data.gone}
          {data.needs[word + 1] === "any" && " (outline: it alone is enough)"}
        </span>
      </span>
    </p>
  );
}

function Parts({ shown, heat }: { shown: Shown; heat: (part: number) => ComponentChildren }) {
  const { data, words, head } = shown;
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const unfold = (...names: string[]) => setOpen(new Set([...open, ...names]));
  const numbers = useMemo(() => answer.partNumbers(data, words, head), [data, words, head]);
  const attention = useMemo(() => answer.inkOf(data, words, head), [data, words, head]);
  const most = Math.max(...numbers.map(({ looked, due }) => Math.max(looked, due))) * 1.05 || 1;
  const runs = data.parts.flatMap((part) => part.runs);
  const top = runs.reduce((high, [from, to]) => Math.max(high, ...attention.subarray(Math.max(1, from), to)), 0) || 1;
  const drawn = { data, most, attention, top };
  const kept = answer.foremost(numbers, data.parts, PARTS);
  const rows = answer.folded(answer.inOrder(data.parts), (part) => kept.has(part) || open.has(`${part}`));
  const outer = (part: number) => !answer.hasInner(data.parts, part);
  const together = (of: readonly number[]) =>
    answer.shareText(of.filter(outer).reduce((sum, part) => sum + numbers[part].looked, 0));
  const [start, template, self] = answer.sharesOf(data, words, head).slice(-3);
  return (
    <ol class="answer-parts">
      {rows.map(({ shown: isShown, of }) =>
        isShown || of.length === 1 ? (
          of.map((part) => (
            <Part key={part} drawn={drawn} part={part} numbers={numbers[part]}>
              {answer.picturesOf(data, part).length > 0 ? (
                heat(part)
              ) : (
                <PartText
                  drawn={drawn}
                  part={part}
                  isOpen={open.has(`text ${part}`)}
                  onOpen={() => unfold(`text ${part}`)}
                />
              )}
            </Part>
          ))
        ) : (
          <li key={`folded ${of[0]}`}>
            <button class="answer-fold boxed muted" data-fold onClick={() => unfold(...of.map(String))}>
              … {of.length} parts, {data.parts[of[0]].name} to {data.parts[of[of.length - 1]].name}: {together(of)}{" "}
              together
            </button>
          </li>
        ),
      )}
      <li class="fine">
        The rest: first token {answer.shareText(start)},{" "}
        {template > 0 && `marks of the template ${answer.shareText(template)}, `}
        the answer itself {answer.shareText(self)}.
      </li>
    </ol>
  );
}

/** What the rows of parts share. */
interface Drawn {
  readonly data: answer.AnswerData;
  /** The share that is as long as a bar. */
  readonly most: number;
  readonly attention: Float32Array;
  /** Attention of the darkest token. */
  readonly top: number;
}

type PartProps = { drawn: Drawn; part: number; numbers: answer.PartNumbers; children: ComponentChildren };

function Part({ drawn: { data, most }, part, numbers, children }: PartProps) {
  const { name, level, runs } = data.parts[part];
  const { looked, due, lost, isNeeded, isEnough, told } = numbers;
  const tokens = runs.reduce((sum, [first, stop]) => sum + stop - first, 0);
  const inner = level > 0 ? name.slice(name.lastIndexOf(", ") + 1).trim() : name;
  return (
    <li class="answer-part stack" data-part={part} data-needed={isNeeded || undefined} style={{ "--level": level }}>
      <div>
        <bdi>{inner}</bdi> <small class="muted block">{tokens} tokens</small>
      </div>
      <div class="answer-text slim" dir="auto">
        {children}
      </div>
      <div class="answer-bars stack">
        <span class="answer-bar answer-look relative" style={{ "--part": looked / most }}>
          <s style={{ "--due": due / most }} />
        </span>
        <Told text={told[0]} />
        {!Number.isNaN(lost) && (
          <>
            <span class="answer-bar answer-need" data-enough={isEnough || undefined} style={{ "--part": lost }} />
            <Told text={told[1]} />
          </>
        )}
      </div>
    </li>
  );
}

/** What a bar says, its numbers in bold. */
function Told({ text }: { text: string }) {
  const pieces = text.split(/( · .+|as probable|alone: | → |not visible)/);
  return <span class="muted">{pieces.map((piece, at) => (at % 2 ? piece : <b key={at}>{piece}</b>))}</span>;
}

type PartTextProps = { drawn: Drawn; part: number; isOpen: boolean; onOpen: () => void };

/** The text of a part, its strongest sentences where it is folded, each token as dark as it was looked at. */
function PartText({ drawn, part, isOpen, onOpen }: PartTextProps) {
  const { data, attention, top } = drawn;
  const sentences = useMemo(() => answer.sentencesOf(data, part), [data, part]);
  const kept = isOpen ? new Set(sentences) : answer.strongest(sentences, attention, SENTENCES);
  const runs = answer.folded([...sentences.keys()], (at) => kept.has(sentences[at]));
  return (
    <>
      {runs.map(({ shown, of }) =>
        shown ? (
          of.map((at) => <Fragment key={at}>{inked(data.pieces, sentences[at], attention, top)} </Fragment>)
        ) : (
          <button
            key={`folded ${of[0]}`}
            class="answer-fold boxed muted"
            data-fold
            aria-label={`Show ${of.length} more sentences`}
            onClick={onOpen}
          >
            … {of.length}
          </button>
        ),
      )}
    </>
  );
}

function inked(pieces: readonly string[], [first, stop]: answer.Run, attention: Float32Array, top: number) {
  const shown: ComponentChildren[] = [];
  for (let token = first; token < stop; token++) {
    const text = pieces[token].trimStart();
    if (token > first) shown.push(pieces[token].slice(0, pieces[token].length - text.length));
    const strength = token > 0 ? Math.sqrt(attention[token] / top) : 0;
    const ink = `${Math.round(100 * DARKEST * Math.min(1, strength))}%`;
    if (strength < FAINT) shown.push(text);
    else
      shown.push(
        <mark key={token} style={{ "--ink": ink }} title={`${answer.shareText(attention[token])} of the attention`}>
          {text}
        </mark>,
      );
  }
  return shown;
}
