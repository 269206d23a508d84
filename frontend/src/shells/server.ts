import { httpSource } from "../source/http";
import { openPage } from "./show";
import { takeToken } from "./token";

/** The page of `headscope serve`. */
export async function serve(element: HTMLElement): Promise<void> {
  const token = takeToken();
  await openPage(element, async () => {
    const source = await httpSource("./", token);
    // The server sends the page itself to everyone, so without the title.
    document.title = source.header.title;
    return source;
  });
}
