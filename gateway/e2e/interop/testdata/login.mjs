#!/usr/bin/env node
// A client of the official suite's scenarios about logins: Goblin, with a user who logs
// in whenever it says so. The suite appends the URL of the server.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const url = process.argv.at(-1);
if (process.env.BROWSER === process.argv[1]) {
  await (await fetch(url)).text(); // started as the browser
  process.exit(0);
}
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const machine = scenario.includes("client-credentials");
const oauth = {};
if (context.client_id) oauth.client_id = context.client_id;
if (context.client_secret ?? context.private_key_pem) oauth.client_secret = context.client_secret ?? context.private_key_pem;
if (machine) oauth.grant = "client_credentials";
if (oauth.client_secret) { // it is bound to an issuer; the suite chooses a free port for that
  const refused = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  const [, metadata] = /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "") ?? [];
  oauth.issuer = (await (await fetch(metadata)).json()).authorization_servers[0];
}
if (scenario.includes("cimd")) oauth.client_metadata_url = "https://conformance-test.local/client-metadata.json";

const dir = mkdtempSync(join(tmpdir(), "login"));
const config = join(dir, "goblin.json");
writeFileSync(config, JSON.stringify({ servers: { s: { url, oauth } }, gateway: { meta_tools: false, startup_wait: "10s" } }));
const env = { ...process.env, HOME: dir, XDG_RUNTIME_DIR: dir, GOBLIN_CONFIG: config, GOBLIN_NO_KEYRING: "1", BROWSER: process.argv[1] };

function login() {
  const { status, stderr } = spawnSync(process.env.GOBLIN, ["login", "s"], { env, encoding: "utf8", timeout: 20_000 });
  console.error(stderr);
  return status === 0;
}
if (!machine && !login()) process.exit(1);

const goblin = spawn(process.env.GOBLIN, ["stdio", "--standalone"], { env, stdio: ["pipe", "pipe", "inherit"] });
const answers = new Map();
createInterface({ input: goblin.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (!("method" in message)) answers.get(message.id)?.(message);
});
let last = 0;
function request(method, params = {}) {
  const id = ++last;
  goblin.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  return new Promise((resolve) => answers.set(id, resolve));
}
await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "suite", version: "1" } });
goblin.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');

// Three logins are more than any scenario allows a client to try.
let works = true;
for (let tries = 0, done = false; works && !done && tries < 4; tries++) {
  done = true;
  const { tools = [] } = (await request("tools/list")).result ?? {};
  const replies = [await request("tools/call", { name: "s_none", arguments: {} })];
  for (const { name } of tools) replies.push(await request("tools/call", { name, arguments: {} }));
  if (JSON.stringify(replies).includes("needs login")) {
    done = false;
    works = tries < 3 && login();
  }
}
goblin.stdin.end();
goblin.on("exit", () => process.exit(works ? 0 : 1));
