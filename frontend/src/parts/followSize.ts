/** Milliseconds between two looks at an element that has no width yet. */
const NO_WIDTH_YET = 500;

/** Measures an element now and whenever its size changes; gives what ends that. */
export function followSize(element: Element, measure: () => void): () => void {
  const observer = new ResizeObserver(measure);
  observer.observe(element);
  measure();
  // Observers are silent in a frame out of sight, and such a frame may begin before it is told its width.
  const waiting = setInterval(() => {
    if (element.clientWidth === 0) return;
    clearInterval(waiting);
    measure();
  }, NO_WIDTH_YET);
  return () => {
    clearInterval(waiting);
    observer.disconnect();
  };
}
