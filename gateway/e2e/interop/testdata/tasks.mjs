// Uses a tool that runs as a task by the TypeScript SDK's client and prints
// what happened as one JSON document.
//
//   node tasks.mjs SPEC.json
//
// SPEC: {modules, transport: {command, args, env} | {url}, tool}. The tool is
// simulate-research-query of server-everything, under the name it has here.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
const sdk = (path) =>
  import(pathToFileURL(`${spec.modules}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`).href);
const { Client } = await sdk("client/index");
const types = await sdk("types");
const related = (message) => message.params?._meta?.["io.modelcontextprotocol/related-task"]?.taskId;

const client = new Client({ name: "interop", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } } });
const asked = [];
client.setRequestHandler(types.ElicitRequestSchema, (request) => {
  asked.push({ task: related(request), message: request.params.message });
  return { action: "accept", content: { interpretation: "practical" } };
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
const { tools } = await client.listTools();
const tasks = client.experimental.tasks;

// call follows a task to its end.
const call = async (args) => {
  const seen = { statuses: [] };
  for await (const message of tasks.callToolStream({ name: spec.tool, arguments: args })) {
    if (message.type === "taskCreated") seen.id = message.task.taskId;
    if (message.type === "taskStatus" && seen.statuses.at(-1) !== message.task.status) seen.statuses.push(message.task.status);
    if (message.type === "result") seen.text = message.result.content[0].text;
    if (message.type === "error") seen.error = String(message.error);
  }
  return seen;
};
const plain = await call({ topic: "bees" });
const ambiguous = await call({ topic: "python", ambiguous: true });

const stream = tasks.callToolStream({ name: spec.tool, arguments: { topic: "late" } });
const { value: created } = await stream.next();
const cancelled = await tasks.cancelTask(created.task.taskId);
const listed = (await tasks.listTasks()).tasks;
const missing = await tasks.getTask("none").then(
  () => "found",
  (e) => e.code,
);
console.log(
  JSON.stringify({
    support: tools.find((t) => t.name === spec.tool)?.execution?.taskSupport,
    plain: { ...plain, id: undefined },
    ambiguous: { ...ambiguous, id: undefined },
    asked: asked.map((a) => ({ message: a.message, own: a.task === ambiguous.id })),
    cancelled: cancelled.status,
    listed: [plain.id, ambiguous.id, created.task.taskId].map((id) => listed.find((t) => t.taskId === id)?.status),
    missing,
  }),
);
await client.close();
process.exit(0);
