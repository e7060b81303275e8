// The matrix's server with the TypeScript SDK 2: "node server-v2.mjs stdio|http
// modern|dual". Modern is 2026-07-28 alone; dual is that and the revisions up to
// 2025-11-25, over HTTP with sessions for these. Over HTTP it prints its URL.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  acceptedContent,
  completable,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  McpServer,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { cancellation, people, schemaOfName, starting, text } from "./fixtures.mjs";

const [way, eras] = process.argv.slice(2);
const legacy = eras === "dual" ? "serve" : "reject";
const connected = new Map(); // servers that outlive a request, and what is watched
let extended = false;
let handler; // of modern HTTP, whose servers live for a request each

function make({ era }) {
  const server = new McpServer(
    { name: "matrix", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } } },
  );
  const watched = new Set();
  if (way === "stdio" || era === "legacy") {
    connected.set(server, watched);
    server.server.onclose = () => connected.delete(server);
  }
  const tool = (name, shape, handle) => server.registerTool(name, { inputSchema: z.object(shape) }, handle);

  tool("echo", { text: z.string() }, (args) => text(`echo: ${args.text}`));
  tool("era", {}, () => text(era));
  tool("progress", {}, async (_, ctx) => {
    for (let n = 1; n <= 3; n++) await progress(ctx, n);
    return text("done");
  });
  tool("wait", {}, async (_, ctx) => {
    await progress(ctx, 1);
    await cancellation.of(ctx.mcpReq.signal);
    return text("cancelled");
  });
  tool("cancelled", {}, async () => text(await cancellation.seen()));
  tool("log", {}, async (_, ctx) => {
    await ctx.mcpReq.log("debug", "too fine");
    await ctx.mcpReq.log("info", "for you");
    return text("logged");
  });
  tool("touch", {}, async () => {
    const uri = "matrix://watched";
    handler?.notify.resourceUpdated(uri);
    for (const [other, uris] of connected) {
      if (era === "modern" || uris.has(uri)) await other.server.sendResourceUpdated({ uri });
    }
    return text("touched");
  });
  const extend = (s) => s.registerTool("added", { inputSchema: z.object({}) }, () => text("added"));
  tool("change", {}, () => {
    extended = true;
    handler?.notify.toolsChanged();
    for (const other of connected.keys()) extend(other);
    return text("changed");
  });
  if (extended) extend(server);
  const sampling = { messages: [{ role: "user", content: { type: "text", text: "2+2?" } }], maxTokens: 9 };
  const ask = (request) => inputRequired({ inputRequests: { question: request } });
  const answer = (ctx) => ctx.mcpReq.inputResponses?.question;
  tool("sample", {}, (_, ctx) => {
    if (answer(ctx)) return text(`model: ${answer(ctx).content.text}`);
    return ask(inputRequired.createMessage(sampling));
  });
  tool("elicit", {}, (_, ctx) => {
    if (!answer(ctx)) return ask(inputRequired.elicit({ message: "Your name?", requestedSchema: schemaOfName }));
    const name = acceptedContent(ctx.mcpReq.inputResponses, "question")?.name ?? "";
    return text(`${answer(ctx).action} ${name}`.trim());
  });
  const uris = (result) => result.roots.map((r) => r.uri).join(" ");
  tool("roots", {}, (_, ctx) => (answer(ctx) ? text(uris(answer(ctx))) : ask(inputRequired.listRoots())));
  tool("both", {}, (_, ctx) => {
    const got = ctx.mcpReq.inputResponses;
    if (got?.one && got.two && ctx.mcpReq.requestState() === "asked both") return text(`${uris(got.one)} ${got.two.content.text}`);
    const inputRequests = { one: inputRequired.listRoots(), two: inputRequired.createMessage(sampling) };
    return inputRequired({ inputRequests, requestState: "asked both" });
  });

  const contents = (uri, t) => ({ contents: [{ uri, mimeType: "text/plain", text: t }] });
  server.registerResource("text", "matrix://text", {}, (uri) => contents(uri.href, "the text"));
  server.registerResource("watched", "matrix://watched", {}, (uri) => contents(uri.href, "watched"));
  server.registerResource("asking", "matrix://asking", {}, (uri, ctx) =>
    answer(ctx) ? contents(uri.href, `read for ${uris(answer(ctx))}`) : ask(inputRequired.listRoots()),
  );
  const template = new ResourceTemplate("matrix://item/{id}", {
    list: undefined,
    complete: { id: (value) => starting(["1", "10", "2"], value) },
  });
  server.registerResource("item", template, {}, (uri, { id }) => contents(uri.href, `item ${id}`));
  const argsSchema = z.object({ name: completable(z.string(), (value) => starting(people, value)) });
  server.registerPrompt("greet", { argsSchema }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Hello, ${name}` } }],
  }));
  server.registerPrompt("ask", {}, (ctx) => {
    if (!answer(ctx)) return ask(inputRequired.listRoots());
    return { messages: [{ role: "user", content: { type: "text", text: `Hello, ${uris(answer(ctx))}` } }] };
  });
  if (era === "legacy") {
    server.server.setRequestHandler("resources/subscribe", ({ params }) => {
      watched.add(params.uri);
      return {};
    });
    server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
      watched.delete(params.uri);
      return {};
    });
  }
  return server;
}

const progress = (ctx, n) =>
  ctx.mcpReq.notify({
    method: "notifications/progress",
    params: { progressToken: ctx.mcpReq._meta?.progressToken, progress: n, total: 3, message: `step ${n}` },
  });

if (way === "stdio") {
  serveStdio(make, { legacy });
} else {
  handler = createMcpHandler(make, { legacy: "reject" });
  const modern = toNodeHandler(handler);
  const transports = new Map();
  const withSession = async (req, res, body) => {
    let transport = transports.get(req.headers["mcp-session-id"]);
    if (!transport) {
      if (req.headers["mcp-session-id"]) return res.writeHead(404).end();
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => transports.set(id, transport),
      });
      await make({ era: "legacy" }).connect(transport);
    }
    await transport.handleRequest(req, res, body);
  };
  const http = createServer(async (req, res) => {
    let body;
    if (req.method === "POST") {
      const chunks = await req.toArray();
      body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    }
    if (legacy === "serve" && (await isLegacyRequest(await toWebRequest(req, body ?? null)))) await withSession(req, res, body);
    else await modern(req, res, body);
  });
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}
