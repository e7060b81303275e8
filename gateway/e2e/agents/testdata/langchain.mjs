// An agent as LangChain's documentation builds it.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";
import { ChatOpenAI } from "@langchain/openai";

const [command, ...args] = JSON.parse(process.env.GOBLIN);
const client = new MultiServerMCPClient({ mcpServers: { goblin: { transport: "stdio", command, args } }, prefixToolNameWithServerName: true, additionalToolNamePrefix: "mcp" });
try {
  const llm = new ChatOpenAI({ model: "scripted", apiKey: "none", configuration: { baseURL: process.env.MODEL } });
  const agent = createAgent({ model: llm, tools: await client.getTools() });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: process.argv[2] }] }, { recursionLimit: 60 });
  console.log(messages.at(-1).content);
} finally {
  await client.close();
}
