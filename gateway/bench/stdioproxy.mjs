// Runs mcp-proxy between two stdio transports, as its README shows. Its own command
// serves HTTP only. Arguments: the command line of the server.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { proxyServer } from "mcp-proxy";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "mcp-proxy", version: "1" });
await client.connect(new StdioClientTransport({ command, args }));
const serverCapabilities = client.getServerCapabilities();
const server = new Server(client.getServerVersion(), { capabilities: serverCapabilities });
await proxyServer({ client, server, serverCapabilities });
await server.connect(new StdioServerTransport());
process.stdin.on("end", () => process.exit(0));
