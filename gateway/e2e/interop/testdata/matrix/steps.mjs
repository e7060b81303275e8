// The steps of the matrix's clients in TypeScript, over what every version of
// the SDK can do (see client-v1.mjs and client-v2.mjs). Prints one line of JSON
// per step: {step, saw} or {step, error: {code, message}}.
//
// A spec, read from the file named by the first argument, says
// {sdk, revision, transport: {command, args, env} | {url}, tool, prompt, uri}:
// the last three stand before the names of tools, prompts and resources.
import { readFileSync } from "node:fs";

export const spec = JSON.parse(readFileSync(process.argv[2], "utf8"));
export const root = { uri: "file:///matrix/root", name: "root" };
export const capable = spec.revision >= "2025-06-18"; // elicitation came then

const limit = 15_000;
export const within = (what, promise) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${limit} ms for ${what}`)), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

const asked = {};
export const answers = {
  "sampling/createMessage": (params) => {
    asked.sampling = params.messages[0].content.text;
    return { role: "assistant", model: "none", content: { type: "text", text: "4" } };
  },
  "elicitation/create": (params) => {
    asked.elicitation = params.message;
    return { action: "accept", content: { name: "Ada" } };
  },
  "roots/list": () => ({ roots: [root] }),
};

// What came by notification, and who waits for it.
const seen = {};
const waiting = [];
export function notified(method, params) {
  (seen[method] ??= []).push(params);
  for (const wake of waiting.splice(0)) wake();
}
const count = (method, n) =>
  within(`${n} ${method}`, (async () => {
    while ((seen[method] ?? []).length < n) await new Promise((resolve) => waiting.push(resolve));
    return seen[method];
  })());

const text = (result) => result.content.map((c) => c.text).join("\n") + (result.isError ? " (an error)" : "");
const names = (list, key) => list.map((entry) => entry[key]).sort();

// client has request(method, params), call(params, options), prompt(params),
// read(params), watch(uri), logged(params) and close(). logged makes a call one whose log is wanted.
export async function run(client) {
  const tool = (name, args = {}, more = {}) => ({ name: spec.tool + name, arguments: args, ...more });
  const call = async (name, args) => text(await client.call(tool(name, args)));
  const uri = (u) => spec.uri + u;
  const steps = {
    list: async () => ({
      tools: names((await client.request("tools/list", {})).tools, "name"),
      prompts: names((await client.request("prompts/list", {})).prompts, "name"),
      resources: names((await client.request("resources/list", {})).resources, "uri"),
      templates: names((await client.request("resources/templates/list", {})).resourceTemplates, "uriTemplate"),
    }),
    read: async () => {
      const contents = [];
      for (const u of ["matrix://text", "matrix://item/7"]) {
        const result = await client.request("resources/read", { uri: uri(u) });
        contents.push(...result.contents.map((c) => [c.uri, c.text]));
      }
      return { contents };
    },
    call: async () => {
      const got = await client.request("prompts/get", { name: spec.prompt + "greet", arguments: { name: "Ada" } });
      return { text: await call("echo", { text: "grüße <&>" }), prompt: got.messages[0].content.text };
    },
    "subscribe/updated": async () => {
      await client.watch(uri("matrix://watched"));
      await call("touch");
      return { updated: (await count("notifications/resources/updated", 1))[0].uri };
    },
    list_changed: async () => {
      seen["notifications/tools/list_changed"] = [];
      await call("change");
      for (let n = 1; ; n++) { // the first may be of an earlier change
        await count("notifications/tools/list_changed", n);
        const { tools } = await client.request("tools/list", {});
        if (tools.some((t) => t.name === spec.tool + "added")) return { added: true };
      }
    },
    progress: async () => {
      const done = text(await client.call(tool("progress", {}, { _meta: { progressToken: "p" } })));
      const all = await count("notifications/progress", 3);
      return { text: done, progress: all.map((p) => [p.progressToken, p.progress, p.total, p.message]) };
    },
    cancel: async () => {
      seen["notifications/progress"] = [];
      const stop = new AbortController();
      const ended = client.call(tool("wait", {}, { _meta: { progressToken: "w" } }), { signal: stop.signal }).then(
        () => "answered",
        () => "given up",
      );
      await count("notifications/progress", 1);
      stop.abort("not wanted any more");
      return { call: await ended, server: await call("cancelled") };
    },
    log: async () => {
      const done = text(await client.call(await client.logged(tool("log"))));
      const all = await count("notifications/message", 1);
      return { text: done, log: all.map((m) => [m.level, m.data]) };
    },
    completion: async () => {
      const complete = async (ref, argument) =>
        (await client.request("completion/complete", { ref, argument })).completion.values;
      return {
        prompt: await complete({ type: "ref/prompt", name: spec.prompt + "greet" }, { name: "name", value: "A" }),
        template: await complete({ type: "ref/resource", uri: uri("matrix://item/{id}") }, { name: "id", value: "1" }),
      };
    },
    sampling: async () => ({ text: await call("sample"), asked: asked.sampling ?? null }),
    elicitation: async () => ({ text: await call("elicit"), asked: asked.elicitation ?? null }),
    roots: async () => ({ text: await call("roots") }),
    "several questions": async () => ({ text: await call("both") }),
    "other requests that ask": async () => {
      const prompt = await client.prompt({ name: spec.prompt + "ask" });
      const read = await client.read({ uri: uri("matrix://asking") });
      return { prompt: prompt.messages[0].content.text, read: read.contents[0].text };
    },
    era: async () => ({ text: await call("era") }),
  };
  for (const [step, does] of Object.entries(steps)) {
    let line;
    try {
      line = { step, saw: await within(step, does()) };
    } catch (e) {
      const message = e.message.replace(/^MCP error -?\d+: /, ""); // added by the client's SDK
      line = { step, error: { code: typeof e.code === "number" ? e.code : 0, message } };
    }
    process.stdout.write(JSON.stringify(line) + "\n");
  }
  await client.close();
  process.stdout.write(JSON.stringify({ step: "end" }) + "\n", () => process.exit(0));
}
