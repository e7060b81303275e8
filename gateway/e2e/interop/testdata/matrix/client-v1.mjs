// A client with the TypeScript SDK 1: the release named by the spec, each of
// which asks for the newest revision that it knew.
import { answers, capable, notified, root, run, spec, within } from "./steps.mjs";

const { Client } = await import(`${spec.sdk}/client/index.js`);
const types = await import(`${spec.sdk}/types.js`);

const client = new Client(
  { name: "matrix", version: "1.0.0" },
  { capabilities: { roots: { listChanged: true }, sampling: {}, ...(capable ? { elicitation: {} } : {}) } },
);
const schemas = {
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "elicitation/create": types.ElicitRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
};
for (const [method, schema] of Object.entries(schemas)) {
  if (schema) client.setRequestHandler(schema, (request) => answers[method](request.params));
}
for (const schema of [
  types.ResourceUpdatedNotificationSchema,
  types.ToolListChangedNotificationSchema,
  types.ProgressNotificationSchema,
  types.LoggingMessageNotificationSchema,
]) {
  client.setNotificationHandler(schema, (n) => notified(n.method, n.params));
}

let transport;
if (spec.transport.url) {
  const { StreamableHTTPClientTransport } = await import(`${spec.sdk}/client/streamableHttp.js`);
  transport = new StreamableHTTPClientTransport(new URL(spec.transport.url));
} else {
  const { StdioClientTransport } = await import(`${spec.sdk}/client/stdio.js`);
  transport = new StdioClientTransport({ ...spec.transport, stderr: "inherit" });
}
let protocol; // what was asked for
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  protocol ??= message.params?.protocolVersion;
  return send(message, options);
};
await within("connect", client.connect(transport));
if (protocol !== spec.revision) throw new Error(`${spec.sdk} asked for ${protocol}, not for ${spec.revision}`);

await run({
  request: (method, params) => client.request({ method, params }, types.ResultSchema),
  call: (params, options) => client.request({ method: "tools/call", params }, types.CallToolResultSchema, options),
  prompt: (params) => client.getPrompt(params),
  read: (params) => client.readResource(params),
  watch: (uri) => client.subscribeResource({ uri }),
  logged: async (params) => {
    await client.setLoggingLevel("info");
    return params;
  },
  close: () => client.close(),
});
