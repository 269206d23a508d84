// Writes the TypeScript types of the page contract from the JSON schema that Python generated.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const schema = new URL("../src/contract/page.schema.json", import.meta.url);
const types = new URL("../src/contract/page.ts", import.meta.url);

const BANNER =
  "// Generated from page.schema.json by `npm run contract`; change src/headscope/views/contract.py instead.";

export async function contractTypes() {
  return compile(JSON.parse(await readFile(schema, "utf8")), "Page", {
    bannerComment: BANNER,
    additionalProperties: false,
    style: { printWidth: 120, singleQuote: false },
  });
}

if (process.argv[1] === new URL(import.meta.url).pathname) await writeFile(types, await contractTypes());
