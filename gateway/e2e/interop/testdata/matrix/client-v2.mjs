// A client with the TypeScript SDK 2, pinned to the revision of the spec.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answers, notified, run, spec, within } from "./steps.mjs";

const modern = spec.revision >= "2026-07-28";
const client = new Client(
  { name: "matrix", version: "1.0.0" },
  {
    capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: { form: {} } },
    ...(modern
      ? { versionNegotiation: { mode: { pin: spec.revision } } }
      : { supportedProtocolVersions: [spec.revision] }),
  },
);
for (const method of Object.keys(answers)) {
  client.setRequestHandler(method, (request) => answers[method](request.params));
}
for (const method of [
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/progress",
  "notifications/message",
]) {
  client.setNotificationHandler(method, (n) => notified(n.method, n.params));
}

const transport = spec.transport.url
  ? new StreamableHTTPClientTransport(new URL(spec.transport.url))
  : new StdioClientTransport({ ...spec.transport, stderr: "inherit" });
await within("connect", client.connect(transport));
if (client.getNegotiatedProtocolVersion() !== spec.revision) {
  throw new Error(`negotiated ${client.getNegotiatedProtocolVersion()}, not ${spec.revision}`);
}
if (modern) await within("listen", client.listen({ toolsListChanged: true }));

await run({
  request: (method, params) => client.request({ method, params }),
  call: (params, options) => client.callTool(params, options),
  prompt: (params) => client.getPrompt(params),
  read: (params) => client.readResource(params),
  watch: (uri) => (modern ? client.listen({ resourceSubscriptions: [uri] }) : client.subscribeResource({ uri })),
  logged: async (params) => {
    if (modern) return { ...params, _meta: { "io.modelcontextprotocol/logLevel": "info" } };
    await client.setLoggingLevel("info");
    return params;
  },
  close: () => client.close(),
});
