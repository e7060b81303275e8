package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// Endpoint is a Goblin that commands and snippets connect to.
type Endpoint struct {
	// Config is the path for --config; "" is the default config.
	Config string
	// Command starts a stdio client's side; nil means "goblin stdio".
	Command []string
	// URL is the address of Streamable HTTP; "" means that snippets use Command.
	URL string
}

// Snippet is a recorded request in one language.
type Snippet struct {
	Language string // for users
	Text     string // "" if Why is set
	Why      string // why there is none
}

// Extension returns the suffix of file names of the language.
func (s *Snippet) Extension() string {
	switch s.Language {
	case JSONRPC:
		return ".json"
	case TypeScript:
		return ".mts"
	case Python:
		return ".py"
	}
	return ".sh"
}

// Languages of snippets.
const (
	GoblinCommand = "goblin command"
	JSONRPC       = "JSON-RPC"
	CurlCommand   = "curl"
	TypeScript    = "TypeScript"
	Python        = "Python"
)

// Snippets returns a request in all languages. rec needs complete params.
func Snippets(rec *registry.TrafficRecord, at Endpoint) []Snippet {
	command, whyNoCommand := ShellCommand(rec, at.Config)
	all := []Snippet{{GoblinCommand, command, whyNoCommand}}
	message, why := requestMessage(rec)
	all = append(all, Snippet{JSONRPC, message, why})
	for _, one := range []struct {
		language string
		write    func(*registry.TrafficRecord, Endpoint) string
	}{{CurlCommand, curlSnippet}, {TypeScript, typeScript}, {Python, python}} {
		s := Snippet{Language: one.language, Why: why}
		switch {
		case why != "":
		case rec.Direction != registry.ToServer:
			s.Why = "the server sent it"
		case isHandshake(rec.Method) || rec.Status == registry.StatusNotification:
			s.Why = "the SDK sends it"
		default:
			s.Text = one.write(rec, at)
		}
		all = append(all, s)
	}
	return all
}

// requestMessage returns a request or notification as JSON-RPC.
func requestMessage(rec *registry.TrafficRecord) (text, why string) {
	params := rec.Request
	switch {
	case len(params) == 0 && rec.RequestSize > 0:
		return "", "the params are not recorded"
	case len(params) > 0 && !json.Valid(params):
		return "", "the recorded params are truncated"
	}
	var id json.RawMessage
	if rec.Status != registry.StatusNotification {
		id = json.RawMessage(cmp.Or(registry.WireID(rec.Wire, registry.ClientID), "1"))
		if !json.Valid(id) {
			id = json.RawMessage("1")
		}
	}
	return string(encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{"2.0", id, rec.Method, params})), ""
}

const (
	curlHeaders = curlToken + ` -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'`
	curlSession = curlHeaders + ` -H 'MCP-Protocol-Version: ` + handshakeVersion + `' -H "Mcp-Session-Id: $session"`
	curlToken   = `${MCP_TOKEN:+-H} ${MCP_TOKEN:+"Authorization: Bearer $MCP_TOKEN"}`
	curlText    = `# MCP_TOKEN in the environment is sent as bearer token.
url=%s
session=$(curl -sS -D - -o /dev/null "$url" ` + curlHeaders + ` \
  -d '` + initialize + `' |
  tr -d '\r' | awk 'tolower($1) == "mcp-session-id:" { print $2 }')
curl -sS "$url" ` + curlSession + ` \
  -d '` + initialized + `'
curl -sS "$url" ` + curlSession + ` \
  --data-binary @- <<'EOF'
%s
EOF
`
)

// curlSnippet returns commands for POSIX shells. The request is in a quoted here document.
func curlSnippet(rec *registry.TrafficRecord, at Endpoint) string {
	endpoint, err := cleanURL(cmp.Or(at.URL, DefaultURL))
	if err != nil {
		endpoint, _ = cleanURL(DefaultURL)
	}
	message := encode(struct {
		Version string          `json:"jsonrpc"`
		ID      int             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{"2.0", 1, rec.Method, withoutVolatile(rec.Request)})
	return fmt.Sprintf(curlText, endpoint, message)
}

// command returns the program and its arguments for stdio.
func (at *Endpoint) command() (program string, args []string) {
	switch {
	case len(at.Command) > 0:
		return at.Command[0], at.Command[1:]
	case at.Config != "":
		return "goblin", []string{"stdio", "--config", at.Config}
	}
	return "goblin", []string{"stdio"}
}

// callOf returns the method of SDK clients for a request with its arguments, or "".
func callOf(rec *registry.TrafficRecord) (method, name string, args json.RawMessage) {
	var p map[string]json.RawMessage
	if json.Unmarshal(rec.Request, &p) != nil {
		return "", "", nil
	}
	for key := range p {
		if key != "name" && key != "arguments" && key != "uri" && key != "_meta" {
			return "", "", nil // such as a task
		}
	}
	key := "name"
	if rec.Method == "resources/read" {
		key = "uri"
	}
	if !rawjson.IsString(p[key]) || json.Unmarshal(p[key], &name) != nil {
		return "", "", nil
	}
	args = p["arguments"]
	if len(args) == 0 || !rawjson.IsObject(args) {
		args = json.RawMessage("{}")
	}
	return rec.Method, name, args
}

func typeScript(rec *registry.TrafficRecord, at Endpoint) string {
	transport, imported, token := "", "", ""
	if at.URL != "" {
		imported = `import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";`
		transport = "new StreamableHTTPClientTransport(new URL(" + script(at.URL) + "), { requestInit: { headers } })"
		token = "\nconst token = process.env.MCP_TOKEN; // if Goblin needs one\nconst headers = token ? { Authorization: \"Bearer \" + token } : undefined;"
	} else {
		program, args := at.command()
		imported = `import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";`
		transport = "new StdioClientTransport({ command: " + script(program) + ", args: " + script(args) + " })"
	}
	call := ""
	switch method, name, args := callOf(rec); method {
	case "tools/call":
		call = "client.callTool({ name: " + script(name) + ", arguments: " + scriptJSON(args) + " })"
	case "prompts/get":
		call = "client.getPrompt({ name: " + script(name) + ", arguments: " + scriptJSON(args) + " })"
	case "resources/read":
		call = "client.readResource({ uri: " + script(name) + " })"
	default:
		imported += "\n" + `import { ResultSchema } from "@modelcontextprotocol/sdk/types.js";`
		params := ""
		if rawjson.IsObject(rec.Request) {
			params = ", params: " + scriptJSON(withoutVolatile(rec.Request))
		}
		call = "client.request({ method: " + script(rec.Method) + params + " }, ResultSchema)"
	}
	return `// npm install @modelcontextprotocol/sdk
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
` + imported + `
` + token + `
const client = new Client({ name: "snippet", version: "1.0.0" });
await client.connect(` + transport + `);
try {
  const result = await ` + call + `;
  console.log(JSON.stringify(result, null, 2));
} finally {
  await client.close();
}
`
}

// script returns a string or list of strings in TypeScript. JSON is a subset of it.
func script(v any) string { return string(encode(v)) }

// scriptJSON returns a value in TypeScript. In a literal, the key __proto__ would set the
// prototype.
func scriptJSON(value json.RawMessage) string {
	text := string(encode(value))
	if bytes.Contains(value, []byte("__proto__")) || strings.Contains(text, `\u005f`) || strings.Contains(text, `\u005F`) {
		return "JSON.parse(" + script(text) + ")"
	}
	return text
}

func python(rec *registry.TrafficRecord, at Endpoint) string {
	standard, imported, transport, headers, streams := "import asyncio\n", "", "", "", "read, write"
	if at.URL != "" {
		imported = "from mcp.client.streamable_http import streamablehttp_client\n"
		standard += "import os\n"
		headers = "\ntoken = os.environ.get(\"MCP_TOKEN\")  # if Goblin needs one\nheaders = {\"Authorization\": \"Bearer \" + token} if token else None\n"
		transport, streams = "streamablehttp_client("+pythonString(at.URL)+", headers=headers)", "read, write, _"
	} else {
		program, args := at.command()
		words := make([]string, len(args))
		for i, word := range args {
			words[i] = pythonString(word)
		}
		imported = "from mcp import StdioServerParameters\nfrom mcp.client.stdio import stdio_client\n"
		transport = "stdio_client(StdioServerParameters(command=" + pythonString(program) + ", args=[" + strings.Join(words, ", ") + "]))"
	}
	call := ""
	switch method, name, args := callOf(rec); method {
	case "tools/call":
		call = "session.call_tool(" + pythonString(name) + ", " + pythonJSON(args) + ")"
	case "prompts/get":
		call = "session.get_prompt(" + pythonString(name) + ", " + pythonJSON(args) + ")"
	case "resources/read":
		imported += "from pydantic import AnyUrl\n"
		call = "session.read_resource(AnyUrl(" + pythonString(name) + "))"
	default:
		imported += "from mcp.shared.message import SessionMessage\nfrom mcp.types import JSONRPCMessage, JSONRPCRequest\n"
		return pythonRequest(rec, standard, imported, headers, transport, streams)
	}
	return `# pip install 'mcp<2'
` + standard + `
from mcp import ClientSession
` + imported + headers + `

async def main():
    async with ` + transport + ` as (` + streams + `):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await ` + call + `
            print(result.model_dump_json(indent=2, by_alias=True))


asyncio.run(main())
`
}

// pythonRequest returns a snippet for a method without a function in the SDK: it sends the
// messages itself.
func pythonRequest(rec *registry.TrafficRecord, standard, imported, headers, transport, streams string) string {
	params := json.RawMessage("{}")
	if rawjson.IsObject(rec.Request) {
		params = withoutVolatile(rec.Request)
	}
	return `# pip install 'mcp<2'
` + standard + `
` + imported + `from mcp.types import JSONRPCNotification
` + headers + `

async def main():
    async with ` + transport + ` as (` + streams + `):
        async def request(number, method, params):
            await write.send(SessionMessage(JSONRPCMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params))))
            async for message in read:
                answer = message.message.root
                if getattr(answer, "id", None) == number:
                    return answer

        await request(0, "initialize", {"protocolVersion": "` + handshakeVersion + `", "capabilities": {}, "clientInfo": {"name": "snippet", "version": "1"}})
        await write.send(SessionMessage(JSONRPCMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))))
        answer = await request(1, ` + pythonString(rec.Method) + ", " + pythonJSON(params) + `)
        print(answer.model_dump_json(indent=2, by_alias=True))


asyncio.run(main())
`
}

// pythonJSON returns valid JSON as a Python expression.
func pythonJSON(text json.RawMessage) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"':
			end := i + 1
			for text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			s, _ := rawjson.String(text[i : end+1])
			b.WriteString(pythonString(s))
			i = end + 1
		case ' ', '\t', '\r', '\n':
			i++
		case ',', ':':
			b.WriteByte(c)
			b.WriteByte(' ')
			i++
		case 't', 'f', 'n':
			word := map[byte]string{'t': "True", 'f': "False", 'n': "None"}[c]
			b.WriteString(word)
			i += map[byte]int{'t': 4, 'f': 5, 'n': 4}[c]
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// pythonString quotes a string for Python. Other characters than printable ones are
// escaped, so that the text shows what it contains.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError, r == ' ', unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}

// ShellCommand returns the goblin command that sends the same request to a config's
// daemon, or why there is none. config is a path, or "" for the default.
func ShellCommand(r *registry.TrafficRecord, config string) (command, why string) {
	verb := map[string]string{"tools/call": "call", "prompts/get": "prompt", "resources/read": "read"}[r.Method]
	if verb == "" || r.Direction != registry.ToServer {
		return "", r.Method + " is not supported"
	}
	var p struct {
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		Arguments json.RawMessage            `json:"arguments"`
		Meta      map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(r.Request, &p) != nil {
		return "", "the recorded params are truncated"
	}
	name := p.Name
	if verb == "read" {
		name = p.URI
	}
	if name == "" {
		return "", "the request has no name"
	}
	var flags []string
	switch {
	case len(p.Arguments) == 0 || string(p.Arguments) == "null":
	case verb == "call":
		flags = append(flags, "--args", shellSafe(string(compactJSON(p.Arguments))))
	case verb == "prompt":
		args, ok := promptArguments(p.Arguments)
		if !ok {
			return "", "the prompt's arguments are not strings"
		}
		flags = append(flags, args...)
	}
	delete(p.Meta, "progressToken") // the client's own
	if len(p.Meta) > 0 {
		meta, _ := termtext.EncodeJSON(p.Meta, "") // all parts are valid
		flags = append(flags, "--meta", shellSafe(meta))
	}
	if config != "" {
		flags = append(flags, "--config", config)
	}
	if slices.ContainsFunc(append(flags, name), func(word string) bool { return !termtext.IsTypeable(word) }) {
		return "", "cmd interprets some of its characters"
	}
	return termtext.Command("goblin "+verb, []string{name}, flags...), ""
}

// shellSafe returns equivalent JSON without the characters that cmd interprets.
func shellSafe(text string) string {
	if termtext.IsTypeable(text) {
		return text
	}
	return strings.NewReplacer("&", `\u0026`, "|", `\u007c`, "<", `\u003c`, ">", `\u003e`, "^", `\u005e`, "%", `\u0025`).Replace(text)
}

func compactJSON(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // decoded before
	}
	return []byte(termtext.JSON(b.String()))
}

func promptArguments(raw json.RawMessage) (words []string, ok bool) {
	for key, value := range rawjson.Members(raw) {
		name, _ := rawjson.String(key)
		text, is := rawjson.String(value)
		if !is || name == "" || strings.Contains(name, "=") {
			return nil, false
		}
		words = append(words, "--arg", name+"="+text)
	}
	return words, rawjson.IsObject(raw)
}
