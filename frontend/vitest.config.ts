import { defineConfig } from "vitest/config";

/** Tests of a page set up its document, and what a shell keeps for its whole page: each file starts anew. */
const PAGES = "tests/shells/**/*.test.{ts,tsx}";

export default defineConfig({
  define: { OF_MODEL: "false" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    testTimeout: 30_000,
    // Vitest leaves one core free for those who watch files.
    maxWorkers: "100%",
    projects: [
      {
        extends: true,
        // To start a process for each of these files takes longer than its tests.
        test: { name: "pure", include: ["tests/**/*.test.{ts,tsx}"], exclude: [PAGES], isolate: false },
      },
      { extends: true, test: { name: "shells", include: [PAGES] } },
    ],
  },
});
