// Writes the TypeScript types of what Python and the viewer agree on, from the JSON schemas that Python wrote. Git ignores
// them (frontend/types): `npm run build`, `check` and `test` write them first.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const SCHEMAS = new URL("../contract/", import.meta.url);
const TYPES = new URL("../types/", import.meta.url);
const CONTRACTS = {
  page: {
    name: "Page",
    declared: "src/headscope/views/contract.py",
    more: '\n\nimport type { WhyPicture } from "./why";',
  },
  answer: { name: "AnswerPicture", declared: "src/headscope/views/answer_contract.py", more: "" },
  why: { name: "WhyPicture", declared: "src/headscope/views/why_contract.py", more: "" },
  live: {
    name: "LiveMessages",
    declared: "src/headscope/live/contract.py",
    more: '\n\nimport type { AnswerPicture } from "./answer";\nimport type { Page, PageMoved } from "./page";\nimport type { WhyPicture } from "./why";',
  },
};

async function contractTypes(of) {
  const { name, declared, more } = CONTRACTS[of];
  const schema = await readFile(new URL(`${of}.schema.json`, SCHEMAS), "utf8");
  const banner = `// Generated from ${of}.schema.json by \`npm run contract\`; change ${declared} instead.`;
  const types = await compile(JSON.parse(schema), name, {
    bannerComment: banner + more,
    additionalProperties: false,
    style: { printWidth: 120, singleQuote: false },
  });
  // The whole of the messages is what holds all of them in the schema: no message is that.
  return types
    .replace(/(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?export interface LiveMessages \{[\s\S]*?\n\}\n/, "")
    .replace(/\{\s*\[k: string\]: ([^{};]+);\s*\}/g, "Record<string, $1>");
}

await mkdir(TYPES, { recursive: true });
for (const of of Object.keys(CONTRACTS)) await writeFile(new URL(`${of}.ts`, TYPES), await contractTypes(of));
