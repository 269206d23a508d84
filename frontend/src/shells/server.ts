import { httpSource } from "../source/http";
import { openPage } from "./show";

/** The page of `headscope serve`. */
export async function serve(element: HTMLElement): Promise<void> {
  forgetToken();
  await openPage(element, () => httpSource("./"));
}

/** Takes the token out of the address: a cookie has it by now, and addresses are copied and kept. */
function forgetToken(): void {
  history.replaceState(null, "", location.pathname + location.hash);
}
