// An agent as Mastra's documentation builds it.
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const [command, ...args] = JSON.parse(process.env.GOBLIN);
const mcp = new MCPClient({ servers: { goblin: { command, args } } });
try {
  const provider = createOpenAICompatible({ name: "scripted", baseURL: process.env.MODEL, apiKey: "none" });
  const agent = new Agent({ id: "agent", name: "agent", instructions: "Help.", model: provider("scripted"), tools: await mcp.listTools() });
  const { text } = await agent.generate(process.argv[2], { maxSteps: 20 });
  console.log(text);
} finally {
  await mcp.disconnect();
}
