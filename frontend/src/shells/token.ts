const KEPT_AS = "headscope-token";

/**
 * Takes the token out of the address, as addresses are copied and kept, and keeps it for a reload. Unlike a cookie,
 * session storage belongs to this port alone, and to this tab.
 */
export function takeToken(): string {
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
