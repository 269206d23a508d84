import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { OF_MODEL: "false" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { include: ["tests/**/*.test.{ts,tsx}"], testTimeout: 30_000 },
});
