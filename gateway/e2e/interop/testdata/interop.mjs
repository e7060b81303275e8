// Uses one MCP server by the TypeScript SDK's client and prints what it gave
// as one JSON document.
//
//   node interop.mjs SPEC.json
//
// SPEC: {modules, transport: {command, args, env} | {url}, roots, reads,
// calls: [{name, arguments}], prompts: [{name, arguments}], completions,
// subscription: {uri, trigger}, slow: {name, arguments}}. modules is the folder
// that holds node_modules.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const sdk = (path) =>
  import(pathToFileURL(`${spec.modules}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`).href);
const { Client } = await sdk("client/index");
const types = await sdk("types");

const client = new Client(
  { name: "interop", version: "1.0.0" },
  {
    capabilities: {
      roots: { listChanged: true },
      sampling: {},
      elicitation: { form: {}, url: {} },
    },
  },
);
const asked = [];
client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: spec.roots ?? [] }));
client.setRequestHandler(types.CreateMessageRequestSchema, (request) => {
  asked.push(request);
  return { role: "assistant", model: "none", content: { type: "text", text: "an answer" } };
});
client.setRequestHandler(types.ElicitRequestSchema, (request) => {
  asked.push(request);
  return { action: "accept", content: { name: "A. Name", check: true } };
});

const updates = [];
let updated = () => {};
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => {
  updates.push(n.params.uri);
  updated();
});

let transport;
if (spec.transport.url) {
  const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
  transport = new StreamableHTTPClientTransport(new URL(spec.transport.url));
} else {
  const { StdioClientTransport } = await sdk("client/stdio");
  transport = new StdioClientTransport({ ...spec.transport, stderr: "inherit" });
}
await client.connect(transport);

// The schema lets every field through.
const ask = (method, params, options) =>
  client.request({ method, params }, types.ResultSchema, { timeout: 60_000, ...options });
const attempt = async (what) => {
  try {
    return { result: await what };
  } catch (e) {
    return { error: { code: e.code, message: e.message, data: e.data } };
  }
};

async function list(method, member) {
  const all = [];
  let cursor;
  do {
    const page = await ask(method, cursor === undefined ? {} : { cursor });
    all.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

const has = client.getServerCapabilities() ?? {};
const out = {
  protocol: transport.protocolVersion ?? null,
  tools: has.tools ? await list("tools/list", "tools") : [],
  prompts: has.prompts ? await list("prompts/list", "prompts") : [],
  resources: has.resources ? await list("resources/list", "resources") : [],
  templates: has.resources ? await list("resources/templates/list", "resourceTemplates") : [],
  reads: {},
  calls: [],
  prompt: [],
  completions: [],
  updates: [],
  progress: [],
};
await client.ping();
if (has.logging) await ask("logging/setLevel", { level: "debug" });
for (const uri of [...out.resources.slice(0, 50).map((r) => r.uri), ...(spec.reads ?? [])]) {
  out.reads[uri] = await attempt(ask("resources/read", { uri }));
}
for (const call of spec.calls ?? []) out.calls.push(await attempt(ask("tools/call", call)));
for (const get of spec.prompts ?? []) out.prompt.push(await attempt(ask("prompts/get", get)));
for (const c of spec.completions ?? []) out.completions.push(await attempt(ask("completion/complete", c)));
if (spec.slow) {
  const onprogress = (p) => out.progress.push(p);
  out.slow = await attempt(ask("tools/call", spec.slow, { onprogress }));
}
if (spec.subscription) {
  const first = new Promise((resolve, reject) => {
    updated = resolve;
    setTimeout(() => reject(new Error("no update came")), 30_000).unref();
  });
  await ask("resources/subscribe", { uri: spec.subscription.uri });
  await ask("tools/call", spec.subscription.trigger);
  await first;
  await ask("tools/call", spec.subscription.trigger);
  await ask("resources/unsubscribe", { uri: spec.subscription.uri });
  out.updates = [updates[0]];
}
out.asked = asked.map((r) => ({ method: r.method, params: r.params }));
await client.close();
process.stdout.write(JSON.stringify(out), () => process.exit(0));
