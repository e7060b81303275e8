// An authorization server, oidc-provider, and MCP servers of the TypeScript SDK behind
// its middleware, in one process:
//
//   node authorization.mjs MODULES NAME...
//
// MODULES is the folder that holds node_modules. There is one server for each NAME, a
// resource of its own, at BASE/mcp/NAME. Prints BASE.
//
// GET BASE/control/NAME tells as JSON what the authorization server did for that server,
// and POST BASE/control/NAME/ACTION changes something there: "release" ends calls that
// are held, "revoke" takes back all that was granted.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, ...names] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/node_modules/${path}`).href);
const sdk = (path) => load(`@modelcontextprotocol/sdk/dist/esm/${path}.js`);
const { default: Provider, errors } = await load("oidc-provider/lib/index.js");
const { McpServer } = await sdk("server/mcp");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp");
const { requireBearerAuth } = await sdk("server/auth/middleware/bearerAuth");
const { mcpAuthMetadataRouter } = await sdk("server/auth/router");
const { InvalidTokenError } = await sdk("server/auth/errors");
const express = createRequire(`${modules}/`)("express");

const listen = async (handler) => {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return [server, `http://127.0.0.1:${server.address().port}`];
};
const app = express();
app.use(express.json());
const [, base] = await listen(app);
const place = new Map(); // by resource
for (const name of names) {
  place.set(`${base}/mcp/${name}`, {
    refreshes: 0, refused: 0, revocations: 0, // requests
    held: [], grants: new Set(), tokens: new Set(), clients: new Set(),
  });
}

let handle;
const [, issuer] = await listen((req, res) => handle(req, res));
const provider = new Provider(issuer, {
  scopes: ["openid", "offline_access"],
  clockTolerance: 0,
  cookies: { keys: ["any"] },
  ttl: {
    // The first token of a login is short; that of a refresh lasts beyond any test, so
    // that none is refreshed twice where the machine is slow.
    AccessToken: (ctx) => (ctx.oidc.params.grant_type === "refresh_token" ? 3600 : 5),
    AuthorizationCode: 60, DeviceCode: 600, Grant: 86400, Interaction: 600, RefreshToken: 86400, Session: 86400, IdToken: 600,
  },
  rotateRefreshToken: () => true,
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => false, // each request has to name it
      getResourceServerInfo: (_, resource) => {
        if (!place.has(resource)) throw new errors.InvalidTarget();
        return { scope: "use pay", audience: resource, accessTokenFormat: "opaque" };
      },
    },
  },
});
provider.on("grant.success", (ctx) => {
  const at = place.get(ctx.oidc.params.resource);
  if (ctx.oidc.params.grant_type === "refresh_token") at.refreshes++;
  at.grants.add(ctx.oidc.entities.AccessToken.grantId);
  at.clients.add(ctx.oidc.client.clientId);
  at.tokens.add(ctx.body.access_token).add(ctx.body.refresh_token);
});
provider.on("grant.error", (ctx) => {
  const at = place.get(ctx.oidc?.params?.resource);
  if (at && ctx.oidc.params.grant_type === "refresh_token") at.refused++;
});
provider.use(async (ctx, next) => {
  await next();
  if (ctx.oidc?.route !== "revocation" || ctx.status !== 200) return;
  for (const at of place.values()) if (at.clients.has(ctx.oidc.client.clientId)) at.revocations++;
});
handle = provider.callback(); // of what is used by now

const verifier = {
  async verifyAccessToken(token) {
    const found = await provider.AccessToken.find(token);
    if (!found) throw new InvalidTokenError("unknown");
    return {
      token, clientId: found.clientId, scopes: (found.scope ?? "").split(" "), expiresAt: found.exp,
      resource: new URL(found.aud), extra: { account: found.accountId },
    };
  },
};
const text = (t) => ({ content: [{ type: "text", text: t }] });

function make(at) {
  const server = new McpServer({ name: "guarded", version: "1.0.0" });
  server.registerTool("whoami", {}, ({ authInfo }) => text(authInfo.extra.account));
  server.registerTool("pay", {}, () => text("paid"));
  server.registerTool("hold", {}, async () => {
    await new Promise((resolve) => at.held.push(resolve));
    return text("released");
  });
  return server;
}

const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
for (const [resource, at] of place) {
  const path = new URL(resource).pathname;
  const guard = (requiredScopes) =>
    requireBearerAuth({
      verifier, requiredScopes, expectedResource: resource,
      resourceMetadataUrl: `${base}/.well-known/oauth-protected-resource${path}`,
    });
  const [use, pay] = [guard(["use"]), guard(["use", "pay"])];
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: new URL(resource), scopesSupported: ["use"] }));
  app.post(path, (req, res, next) => (req.body?.params?.name === "pay" ? pay : use)(req, res, next), async (req, res) => {
    const server = make(at);
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(req, res, req.body);
  });
  app.all(path, use, (_, res) => res.status(405).end());
}

app.get("/control/:name", async (req, res) => {
  const at = place.get(`${base}/mcp/${req.params.name}`);
  const { refreshes, refused, revocations } = at;
  let usable = 0;
  for (const token of at.tokens) {
    const found = token && ((await provider.AccessToken.find(token)) ?? (await provider.RefreshToken.find(token)));
    if (found && !found.consumed) usable++;
  }
  res.json({ refreshes, refused, revocations, usable, held: at.held.length, clients: at.clients.size });
});
app.post("/control/:name/release", (req, res) => {
  for (const release of place.get(`${base}/mcp/${req.params.name}`).held.splice(0)) release();
  res.end();
});
app.post("/control/:name/revoke", async (req, res) => {
  for (const grant of place.get(`${base}/mcp/${req.params.name}`).grants) {
    await provider.AccessToken.revokeByGrantId(grant);
    await provider.RefreshToken.revokeByGrantId(grant);
  }
  res.end();
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0)); // with the test
console.log(base);
