/** Milliseconds between two tasks where the browser does not say when it has time (Safari): room for some frames. */
const PAUSE = 50;
/** Milliseconds after which a task is done in a page that always has something else to do. */
const LATEST = 1000;

const waiting: (() => void)[] = [];

/** Does a task when the page has nothing else to do: in order, and never two without a pause. */
export function whenIdle(task: () => void): void {
  if (waiting.push(task) === 1) soon();
}

function soon(): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(first, { timeout: LATEST });
  else setTimeout(first, PAUSE);
}

function first(): void {
  try {
    waiting[0]();
  } finally {
    waiting.shift();
    if (waiting.length > 0) soon();
  }
}
