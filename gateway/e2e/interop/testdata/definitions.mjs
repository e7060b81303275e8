// Lists everything by the client of one release of the TypeScript SDK and prints the names
// as one JSON document. A list that the SDK refuses ends it with an error.
//
//   node definitions.mjs SPEC.json
//
// SPEC: {client, stdio, pin, transport: {command, args, env}}: client and stdio are files
// of the SDK; pin is the revision to ask for, if the SDK takes one.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { Client } = await import(pathToFileURL(spec.client).href);
const { StdioClientTransport } = await import(pathToFileURL(spec.stdio).href);

const options = { capabilities: {} };
if (spec.pin) {
  options.versionNegotiation = { mode: { pin: spec.pin } };
}
const client = new Client({ name: "interop", version: "1.0.0" }, options);
await client.connect(new StdioClientTransport({ ...spec.transport, stderr: "inherit" }));
const { tools } = await client.listTools();
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const result = await client.callTool({ name: "odd_o2", arguments: {} });
const out = {
  tools: tools.map((t) => t.name),
  prompts: prompts.map((p) => p.name),
  resources: resources.map((r) => r.uri),
  templates: resourceTemplates.map((t) => t.uriTemplate),
  structured: result.structuredContent,
};
await client.close();
await new Promise((done) => process.stdout.write(JSON.stringify(out), done));
process.exit(0);
