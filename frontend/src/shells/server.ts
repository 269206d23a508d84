import { httpSource } from "../source/http";
import { openPage } from "./show";

const KEPT_AS = "headscope-token";

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

/**
 * Takes the token out of the address, as addresses are copied and kept, and keeps it for a reload. Unlike a cookie,
 * session storage belongs to this port alone, and to this tab.
 */
function takeToken(): string {
  const given = new URLSearchParams(location.search).get("token");
  if (given === null) return kept();
  history.replaceState(null, "", location.pathname + location.hash);
  try {
    sessionStorage.setItem(KEPT_AS, given);
  } catch {
    // A reader may forbid storage: then the page works until it is reloaded.
  }
  return given;
}

function kept(): string {
  try {
    return sessionStorage.getItem(KEPT_AS) ?? "";
  } catch {
    return "";
  }
}
