/** What a reader or a screen reader meets, one line for each element that says something. */
export function outline(root: ParentNode): string {
  return [...root.children].flatMap((child) => lines(child, "")).join("\n");
}

const SILENT = ["STYLE", "path", "circle", "svg"];
const NAMES = ["role", "aria-label", "aria-selected", "aria-pressed", "aria-hidden", "data-canvas", "data-view"];

function lines(element: Element, indent: string): string[] {
  if (SILENT.includes(element.tagName)) return [];
  const said = words(element);
  const deeper = said ? `${indent}  ` : indent;
  const below = [...element.children].flatMap((child) => lines(child, deeper));
  return said ? [`${indent}${said}`, ...below] : below;
}

function words(element: Element): string {
  const own = [...element.childNodes]
    .map(({ nodeType, textContent }) => (nodeType === Node.TEXT_NODE ? textContent : " "))
    .join("")
    .replace(/\s+/g, " ")
    .trim();
  const named = NAMES.filter((name) => element.hasAttribute(name)).map(
    (name) => `${name}=${JSON.stringify(element.getAttribute(name))}`,
  );
  if (!own && named.length === 0) return "";
  return [element.tagName.toLowerCase(), ...named, own && `“${own}”`].filter(Boolean).join(" ");
}
