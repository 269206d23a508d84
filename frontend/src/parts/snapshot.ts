// An element as it is seen, as a PNG: its canvases as pictures, its words and boxes as the browser draws them.

const DENSITY = 2;
/** Characters that tokens may hold, in tooltips as they are, and XML may not. */
const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** The PNG of an element inside a shadow root, with the styles of that root. */
export async function snapshot(element: HTMLElement): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height } = element.getBoundingClientRect();
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  const svg = new XMLSerializer().serializeToString(foreign(element, size)).replace(NOT_XML, "\ufffd");
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = size.width * DENSITY;
  canvas.height = size.height * DENSITY;
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("this browser made no PNG of the picture");
  return new Uint8Array(await blob.arrayBuffer());
}

const SVG = "http://www.w3.org/2000/svg";

function foreign(element: HTMLElement, { width, height }: { width: number; height: number }): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ width, height })) svg.setAttribute(name, String(value));
  const inside = document.createElementNS(SVG, "foreignObject");
  for (const side of ["width", "height"]) inside.setAttribute(side, "100%");
  const root = element.getRootNode() as ShadowRoot;
  const style = document.createElement("style");
  style.textContent = [...[...root.querySelectorAll("style")].map(outsideShadow), NO_SCROLLBARS].join("\n");
  const page = document.createElement("div");
  page.className = HOST;
  if (root.host instanceof HTMLElement) page.dataset.theme = root.host.dataset.theme;
  page.style.cssText = `width:${width}px;height:${height}px;overflow:hidden`;
  page.append(style, within(element, width, height));
  inside.append(page);
  svg.append(inside);
  return svg;
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
const PLACE = [
  "position",
  "inset",
  "margin",
  "z-index",
  "grid-area",
  "display",
  "opacity",
  "transform",
  "border-radius",
];

function pixels(canvas: HTMLCanvasElement): HTMLImageElement {
  const image = document.createElement("img");
  const style = getComputedStyle(canvas);
  const place = PLACE.map((name) => `${name}:${style.getPropertyValue(name)}`);
  if (canvas.width > 0 && canvas.height > 0) image.src = canvas.toDataURL();
  image.className = canvas.className;
  image.style.cssText = [...place, `width:${canvas.offsetWidth}px`, `height:${canvas.offsetHeight}px`].join(";");
  return image;
}
