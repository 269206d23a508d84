/** A chunk's name as a page and an address can hold it: a stack may be called anything. */
export function encoded(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}
