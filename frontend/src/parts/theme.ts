/** Reports whether it is dark around a view, now and whenever that changes, until stopped. */
export type FollowTheme = (report: (dark: boolean) => void) => () => void;

export const followSystemTheme: FollowTheme = (report) => {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => report(query.matches);
  tell();
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
};
