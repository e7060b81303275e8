// Uses servers with apps as a host built on the official library does, and prints
// what it got as one JSON document.
//
//   node apps.mjs SPEC.json
//
// SPEC: {modules, revision, transport: {command, args, env} | {url}}. Each app is found
// by the library, read, and shown in a view of the library's own, which calls one of
// the server's tools and reads the app again, both by the names that the app knows.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = (path) => import(pathToFileURL(`${spec.modules}/node_modules/@modelcontextprotocol/${path}`).href);
const { Client, InMemoryTransport, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
const { StdioClientTransport } = await load("client/dist/stdio.mjs");
const { AppBridge, getToolUiResourceUri } = await load("ext-apps/dist/src/app-bridge.js");
const { App } = await load("ext-apps/dist/src/app.js");

const client = new Client(
  { name: "host", version: "1.0.0" },
  {
    capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } },
    ...(spec.revision >= "2026-07-28"
      ? { versionNegotiation: { mode: { pin: spec.revision } } }
      : { supportedProtocolVersions: [spec.revision] }),
  },
);
await client.connect(
  spec.transport.url
    ? new StreamableHTTPClientTransport(new URL(spec.transport.url))
    : new StdioClientTransport({ ...spec.transport, stderr: "inherit" }),
);
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const sum = (text) => createHash("sha256").update(text).digest("hex");

// what an app asks for once it is shown: a tool and its own resource.
const asks = {
  "get-budget-data": { call: "get-budget-data", read: "ui://budget-allocator/mcp-app.html" },
  "get-system-info": { call: "poll-system-stats", read: "ui://system-monitor/mcp-app.html" },
};
const found = {};
for (const tool of tools) {
  const uri = getToolUiResourceUri(tool);
  const own = Object.keys(asks).find((name) => tool.name.endsWith(name));
  if (!uri || !own) continue;
  const { contents } = await client.readResource({ uri });
  const bridge = new AppBridge(client, { name: "host", version: "1.0.0" }, { serverTools: {}, serverResources: {} });
  const view = new App({ name: own, version: "1.0.0" }, {}, { autoResize: false });
  const [inside, outside] = InMemoryTransport.createLinkedPair();
  await bridge.connect(outside);
  await view.connect(inside);
  const { call, read } = asks[own];
  const result = await view.callServerTool({ name: call, arguments: {} });
  const again = await view.readServerResource({ uri: read });
  found[own] = {
    uri,
    flat: tool._meta["ui/resourceUri"],
    listed: resources.some((r) => r.uri === uri),
    contents: contents.map((c) => ({ ...c, text: sum(c.text), length: c.text.length })),
    error: result.isError ?? false,
    said: Object.keys(result.structuredContent ?? {}),
    again: again.contents.map((c) => ({ uri: c.uri === read, text: sum(c.text) })),
  };
  await view.close();
}
console.log(JSON.stringify(found));
await client.close();
process.exit(0);
