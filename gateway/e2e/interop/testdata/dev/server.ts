// A server in TypeScript for the tests of goblin dev, which edit it.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server: McpServer = new McpServer({ name: "words", version: "1.0.0" });

server.registerTool("count", { inputSchema: { text: z.string(), unit: z.string().optional() } }, async ({ text }: { text: string }) => ({
  content: [{ type: "text", text: `${text.split(" ").length} words` }],
}));

// more tools

await server.connect(new StdioServerTransport());
