import { PageError } from "../source/errors";

/** What the reader sees instead of a picture when the page is broken. */
export function Failure({ error }: { error: unknown }) {
  return (
    <div class="failure" role="alert" data-failure>
      <strong>This page cannot be shown.</strong>
      <p>{failureText(error)}</p>
    </div>
  );
}

export function failureText(error: unknown): string {
  if (error instanceof PageError) return error.message;
  return `Something went wrong in the viewer: ${error instanceof Error ? error.message : String(error)}`;
}
