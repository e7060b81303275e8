// Calls tools whose results are long by the TypeScript SDK's client, reads what was left
// out page by page, and prints all of it as one JSON document.
//
//   node results.mjs SPEC.json
//
// SPEC: {modules, transport: {command, args, env} | {url}, calls: [{name, arguments}]}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const sdk = (path) =>
  import(pathToFileURL(`${spec.modules}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`).href);
const { Client } = await sdk("client/index");

const client = new Client({ name: "interop", version: "1.0.0" });
let transport;
if (spec.transport.url) {
  const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
  transport = new StreamableHTTPClientTransport(new URL(spec.transport.url));
} else {
  const { StdioClientTransport } = await sdk("client/stdio");
  transport = new StdioClientTransport({ ...spec.transport, stderr: "inherit" });
}
await client.connect(transport);
await client.listTools();
const results = [];
for (const call of spec.calls) {
  const { content, structuredContent } = await client.callTool(call);
  const link = content.find((block) => block.type === "resource_link");
  const texts = content.filter((block) => block.type === "text").map((block) => block.text);
  const pages = [];
  for (let uri = link?.uri; uri; ) {
    const page = await client.readResource({ uri });
    pages.push(page.contents[0].text);
    uri = page._meta?.["goblin/next"];
  }
  const missing = link && (await client.readResource({ uri: `${link.uri}/99` }).then(
    () => "found",
    (e) => e.code,
  ));
  results.push({ texts, pages, mimeType: link?.mimeType, size: link?.size, structuredContent, missing });
}
await client.close();
await new Promise((done) => process.stdout.write(JSON.stringify(results), done)); // it is long
process.exit(0);
