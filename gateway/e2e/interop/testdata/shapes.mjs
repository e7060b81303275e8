// Sends requests with a client of a TypeScript SDK and prints what each was answered by, as
// one JSON list: a result, or {"failed": message}.
//
//   node shapes.mjs SPEC.json
//
// SPEC: {modules, sdk, revision, transport: {command, args, env}, asks: [{method, params}]}.
// sdk is the folder of the package below node_modules; "v2" is the SDK 2.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = (path) => import(pathToFileURL(`${spec.modules}/node_modules/${path}`).href);
let Client, Transport;
const options = {};
if (spec.sdk === "v2") {
  ({ Client } = await load("@modelcontextprotocol/client/dist/index.mjs"));
  ({ StdioClientTransport: Transport } = await load("@modelcontextprotocol/client/dist/stdio.mjs"));
  if (spec.revision >= "2026-07-28") options.versionNegotiation = { mode: { pin: spec.revision } };
  else options.supportedProtocolVersions = [spec.revision];
} else {
  ({ Client } = await load(`${spec.sdk}/dist/esm/client/index.js`));
  ({ StdioClientTransport: Transport } = await load(`${spec.sdk}/dist/esm/client/stdio.js`));
}
const client = new Client({ name: "interop", version: "1.0.0" }, options);
await client.connect(new Transport({ ...spec.transport, stderr: "inherit" }));
const send = {
  "tools/call": (params) => client.callTool(params),
  "resources/read": (params) => client.readResource(params),
  "prompts/get": (params) => client.getPrompt(params),
  "completion/complete": (params) => client.complete(params),
};
const answers = [];
for (const { method, params } of spec.asks) {
  answers.push(await send[method](params).catch((e) => ({ failed: String(e?.message ?? e) })));
}
await client.close();
await new Promise((done) => process.stdout.write(JSON.stringify(answers), done)); // it is long
process.exit(0);
