// Builds src/server.ts into dist/server.mjs by removing its types, as tsc does.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";

const code = stripTypeScriptTypes(readFileSync("src/server.ts", "utf8"));
mkdirSync("dist", { recursive: true });
writeFileSync("dist/server.mjs", code);
