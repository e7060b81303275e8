// The matrix's server with the TypeScript SDK 1, which speaks the revisions up
// to 2025-11-25: "node server-v1.mjs stdio", or "node server-v1.mjs http", which
// prints the URL that it serves, with sessions.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { cancellation, pause, people, schemaOfName, starting, text } from "./fixtures.mjs";

const sessions = new Map(); // what each server's client subscribed to
let extended = false;

function make() {
  const server = new McpServer(
    { name: "matrix", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } },
  );
  const watched = new Set();
  sessions.set(server, watched);
  server.server.onclose = () => sessions.delete(server);
  const tool = (name, shape, handler) => server.registerTool(name, { inputSchema: shape }, handler);

  tool("echo", { text: z.string() }, (args) => text(`echo: ${args.text}`));
  tool("era", {}, () => text("legacy"));
  tool("progress", {}, async (_, extra) => {
    for (let n = 1; n <= 3; n++) await progress(extra, n);
    return text("done");
  });
  tool("wait", {}, async (_, extra) => {
    await progress(extra, 1);
    await cancellation.of(extra.signal);
    return text("cancelled");
  });
  tool("cancelled", {}, async () => text(await cancellation.seen()));
  tool("log", {}, async (_, extra) => {
    await server.sendLoggingMessage({ level: "debug", data: "too fine" }, extra.sessionId);
    await server.sendLoggingMessage({ level: "info", data: "for you" }, extra.sessionId);
    await pause(); // over HTTP these go another way than the answer
    return text("logged");
  });
  tool("touch", {}, async () => {
    for (const [other, uris] of sessions) {
      if (uris.has("matrix://watched")) await other.server.sendResourceUpdated({ uri: "matrix://watched" });
    }
    return text("touched");
  });
  const extend = (s) => s.registerTool("added", { inputSchema: {} }, () => text("added"));
  tool("change", {}, () => {
    extended = true;
    for (const other of sessions.keys()) extend(other);
    return text("changed");
  });
  if (extended) extend(server);
  tool("sample", {}, async (_, extra) => {
    return text(`model: ${await sample(extra)}`);
  });
  tool("elicit", {}, async (_, extra) => {
    const params = { message: "Your name?", requestedSchema: schemaOfName };
    const got = await extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
    return text(`${got.action} ${got.content?.name ?? ""}`.trim());
  });
  tool("roots", {}, async (_, extra) => text(await roots(extra)));
  tool("both", {}, async (_, extra) => {
    const [all, said] = await Promise.all([roots(extra), sample(extra)]);
    return text(`${all} ${said}`);
  });

  const contents = (uri, t) => ({ contents: [{ uri, mimeType: "text/plain", text: t }] });
  server.registerResource("text", "matrix://text", {}, (uri) => contents(uri.href, "the text"));
  server.registerResource("watched", "matrix://watched", {}, (uri) => contents(uri.href, "watched"));
  server.registerResource("asking", "matrix://asking", {}, async (uri, extra) => contents(uri.href, `read for ${await roots(extra)}`));
  const template = new ResourceTemplate("matrix://item/{id}", {
    list: undefined,
    complete: { id: (value) => starting(["1", "10", "2"], value) },
  });
  server.registerResource("item", template, {}, (uri, { id }) => contents(uri.href, `item ${id}`));
  server.registerPrompt("greet", { argsSchema: { name: completable(z.string(), (value) => starting(people, value)) } }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Hello, ${name}` } }],
  }));
  server.registerPrompt("ask", {}, async (extra) => ({
    messages: [{ role: "user", content: { type: "text", text: `Hello, ${await roots(extra)}` } }],
  }));
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
  return server;
}

async function sample(extra) {
  const params = { messages: [{ role: "user", content: { type: "text", text: "2+2?" } }], maxTokens: 9 };
  return (await extra.sendRequest({ method: "sampling/createMessage", params }, CreateMessageResultSchema)).content.text;
}

async function roots(extra) {
  const got = await extra.sendRequest({ method: "roots/list" }, ListRootsResultSchema);
  return got.roots.map((r) => r.uri).join(" ");
}

const progress = (extra, n) =>
  extra.sendNotification({
    method: "notifications/progress",
    params: { progressToken: extra._meta?.progressToken, progress: n, total: 3, message: `step ${n}` },
  });

if (process.argv[2] === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const transports = new Map();
  const http = createServer(async (req, res) => {
    let transport = transports.get(req.headers["mcp-session-id"]);
    if (!transport) {
      if (req.headers["mcp-session-id"]) return res.writeHead(404).end();
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => transports.set(id, transport),
      });
      await make().connect(transport);
    }
    await transport.handleRequest(req, res);
  });
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}
