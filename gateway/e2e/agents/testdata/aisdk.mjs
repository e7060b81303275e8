// An agent as the AI SDK's documentation builds it.
import { stepCountIs, generateText } from "ai";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const [command, ...args] = JSON.parse(process.env.GOBLIN);
const client = await createMCPClient({ transport: new StdioTransport({ command, args }) });
try {
  const provider = createOpenAICompatible({ name: "scripted", baseURL: process.env.MODEL, apiKey: "none" });
  const { text } = await generateText({
    model: provider("scripted"),
    tools: await client.tools(),
    stopWhen: stepCountIs(20),
    prompt: process.argv[2],
  });
  console.log(text);
} finally {
  await client.close();
}
