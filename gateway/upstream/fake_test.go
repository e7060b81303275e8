package upstream

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
)

// TestMain makes the test binary a server of mcp-go if FAKE_MODE asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("FAKE_MODE") == mcpGo {
		recordStart()
		_ = mcpserver.ServeStdio(peer(), mcpserver.WithErrorLogger(log.New(io.Discard, "", 0)))
		return
	}
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // most parallel tests wait
	goleak.VerifyTestMain(m)
}

// recordStart writes the PID to the file where the test server writes its own.
func recordStart() {
	w, err := os.OpenFile(os.Getenv("FAKE_LOG")+".starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	fmt.Fprintln(w, os.Getpid())
}

// mcpGo is the mode of the test binary.
const mcpGo = "mcp-go"

// maxAskingBytes is the limit of requests in flight, in bytes. The tool "heavy" exceeds
// it.
const maxAskingBytes = 4 << 20

// fakeSecret is the secret that the tool and the modes named "blab" print.
const fakeSecret = "sk-sentinel-0123456789-0123456789"

type obj = e2e.Obj

var action = e2e.Do

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// fakeConfig returns the config of a test server with a mode's script, and its file of
// received messages.
func fakeConfig(t testing.TB, mode string) (cfg config.Server, log string) {
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	cfg = config.Server{
		Name: "files", Type: config.Stdio, Isolation: config.Shared, Env: map[string]string{"FAKE_LOG": log},
	}
	if mode == mcpGo {
		cfg.Command, cfg.Env["FAKE_MODE"] = os.Args[0], mode
		return cfg, log
	}
	e2e.Use()
	script := fakeScript(t, mode)
	script["log"] = log
	path := filepath.Join(dir, "script.json")
	require.NoError(t, os.WriteFile(path, e2e.Marshal(script), 0o600))
	cfg.Command, cfg.Args = e2e.TestServer, []string{path}
	return cfg, log
}

// fakeScript returns the script of a mode: the plain mode "" with other members and
// actions.
func fakeScript(t testing.TB, mode string) obj {
	t.Helper()
	script := obj{
		"name": "fake", "version": "2025-06-18", "instructions": "be nice",
		"capabilities": raw(`{"tools":{"listChanged":true}}`),
		"tools":        raw(`[{"name":"echo","x":1.50},{"name":"delete_all"},{"name":"more"}]`),
		"prompts":      raw(`[{"name":"p","vendor":1.0}]`),
		"resources":    raw(`[{"uri":"x://1","name":"one"}]`),
	}
	on := obj{"resources/templates/list": fails(-32601, "Method not found")}
	for tool, acts := range plainTools {
		on["tools/call "+tool] = acts
	}
	change, known := fakeModes[mode]
	require.True(t, known, "unknown mode %q", mode)
	for name, value := range change {
		if acts, ok := value.([]obj); ok {
			on[name] = acts
		} else {
			script[name] = value
		}
	}
	script["on"] = on
	return script
}

func fails(code int, message string) []obj {
	return []obj{action("error", obj{"error": obj{"code": code, "message": message}})}
}

// answered returns the action that answers a request with a result.
func answered(result string, more ...obj) obj {
	return action("answer", append([]obj{{"text": `{"jsonrpc":"2.0","id":$id,"result":` + result + `}`}}, more...)...)
}

var answeredOK = answered(`{"ok":1}`)

// write returns the action that writes a frame n times.
func write(frame string, n int, more ...obj) obj {
	return action("write", append([]obj{{"text": `{"jsonrpc":"2.0",` + frame + `}`, "n": n}}, more...)...)
}

// plainTools are the tool calls of the plain mode.
var plainTools = map[string][]obj{
	"echo":         {answered(`{"n":12345678901234567890.10,"args":$args,"token":$token}`)},
	"hang":         {action("hang")},
	"crash":        {action("crash", obj{"code": 7, "text": "panic: out of cheese"})},
	"mid-line":     {action("raw", obj{"text": `{"jsonrpc":"2.0","id":$id,"result":{"a":`}), action("crash")},
	"close-stdout": {action("closeout"), action("hang")},
	"fail":         {action("reply")},
	"storm": {
		action("write", obj{"n": 20, "text": strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n", 1000), "\n")}),
		answeredOK,
	},
	"progress": {
		action("progress", obj{"n": 6, "ms": 20}),
		answered(`{"ok":1}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":99}`),
	},
	"say":    {action("notify", obj{"method": "notifications/message", "params": raw(`{"level":"info","data":1.50}`)}), answeredOK},
	"ping":   {action("request", obj{"method": "ping"}), action("answers")},
	"sample": {action("request", obj{"method": "sampling/createMessage", "params": raw(`{"n":1.50}`)}), action("answers")},
	"withdraw": {
		write(`"id":"w","method":"sampling/createMessage","params":{}`, 1),
		write(`"method":"notifications/cancelled","params":{"requestId":"w"}`, 1),
		answeredOK,
	},
	"nag": {write(`"id":"n$n","method":"sampling/createMessage","params":{}`, maxRequests+5), answeredOK},
	// More bytes than the limit, except the first.
	"heavy": {write(`"id":"h$n","method":"sampling/createMessage","params":{"x":"$x"}`, 5, obj{"bytes": maxAskingBytes / 4}), answeredOK},
	"env":   {action("env")},
	"blab": {
		action("stderr", obj{"text": strings.Repeat("y", maxStderrLine-len(fakeSecret)/2) + fakeSecret}),
		action("stderr", obj{"text": strings.Repeat("y", maxStderrLine-len(fakeSecret)/2-maxSplit) + fakeSecret + strings.Repeat("y", maxSplit)}),
		action("stderr", obj{"text": strings.Repeat("x", maxQuote-20) + fakeSecret}), // at the limit of a quoted line
		action("stderr", obj{"text": strings.Repeat("x", maxQuote-5) + fakeSecret}),
		action("stderr", obj{"text": strings.Repeat("x", maxQuote-3) + fakeSecret}),
		action("crash", obj{"code": 7}),
	},
}

// oddTools are the tool calls of the mode "odd".
var oddTools = obj{
	"tools/call garbage": []obj{
		action("write", obj{"text": "hello\n\n{}\n[1]\n" + `{"jsonrpc":"2.0","id":999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":{},"result":{}}`}),
		write(`"id":$id,"result":{"ok":1}`, 1), answered(`{"ok":2}`),
	},
	"tools/call glued": []obj{action("raw", obj{"text": "INFO {answering} "}), answeredOK},
	"tools/call flood": []obj{action("stderr", obj{"text": "$x", "bytes": 20_000, "n": 100}), answeredOK},
	// A batch of 2025-03-26. The next line must still be read.
	"tools/call batch": []obj{action("answer", obj{"bytes": 200, "text": `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":$id,"result":{"ok":1}}]` +
		"\n" + `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"$x"}}`})},
	"tools/call posing":  []obj{write(`"id":777,"result":{"text":\x {"jsonrpc":"2.0","id":$id,"result":{"posed":1}`, 1), answeredOK},
	"tools/call broken":  []obj{answered(`{,}`)},
	"tools/call deep":    []obj{answered(`{"a":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`)},
	"tools/call scalar":  []obj{answered(`5`)},
	"tools/call utf8":    []obj{action("answer", obj{"data": []byte(`{"jsonrpc":"2.0","id":$id,"result":{"t":"` + "a\xff\xfeb" + `"}}`)})},
	"tools/call huge":    []obj{action("big", obj{"bytes": 2 << 20})},
	"tools/call bad-ask": []obj{write(`"id":"b1","method":"sampling/createMessage","params":[1]`, 1), answeredOK},
}

// fakeModes are the differences between each mode and the plain one.
var fakeModes = func() map[string]obj {
	all := obj{"capabilities": raw(`{"tools":{},"prompts":{},"resources":{"subscribe":true,"listChanged":false}}`)}
	first, later := obj{"starts": 1}, obj{"after": 1}
	crash := func(more ...obj) []obj { return []obj{action("crash", append([]obj{{"code": 1}}, more...)...)} }
	hang := func(more ...obj) []obj { return []obj{action("hang", more...)} }
	discover := func(later ...obj) obj {
		return obj{"server/discover": append([]obj{answered(`{"supportedVersions":["2026-07-28","2025-06-18"],"capabilities":{}}`, first)}, later...)}
	}
	list := func(acts ...obj) obj { return obj{"tools/list": acts} }
	grandchild := obj{"start": []obj{action("grandchild")}}
	return map[string]obj{
		"":     {},
		"all":  all,
		"none": {"capabilities": raw(`{}`)},
		"odd":  oddTools,

		"crash-start": {"start": []obj{action("crash", obj{"code": 3, "text": "cannot open the database"})}},
		"flaky-start": {"start": crash(obj{"starts": 2})}, // restarted at once if it exits by itself
		"hang-start":  {"start": hang()},
		"hang-later":  {"start": hang(later)},
		"fail-later":  {"start": crash(later)},
		"half-later":  merged(all, obj{"resources/list": hang(later)}),
		"fewer-later": {"initialize": []obj{answered(`{"protocolVersion":"2025-06-18","capabilities":{"prompts":{}},"serverInfo":{"name":"fake","version":"1"}}`, first)}},
		"lie":         merged(all, obj{"resources/list": fails(-32603, "no")}),
		"deaf":        {"serial": true, "notifications/initialized": []obj{action("deaf")}},
		"grandchild":  grandchild,
		"stubborn":    merged(grandchild, obj{"ignoreTerm": true, "ignoreEOF": true}),

		"dual-hang":  discover(hang()...),
		"dual-fail":  discover(crash()...),
		"dual-leave": discover(action("error", obj{"error": raw(`{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}`)})),

		"refuse":         {"initialize": fails(-32000, "bad key")},
		"null-init":      {"initialize": []obj{answered("null")}},
		"bad-version":    {"version": "9999-99-99"},
		"number-version": {"version": 5},
		"blab-refuse":    {"initialize": fails(-32000, strings.Repeat("x", 490)+fakeSecret)},
		"blab-version":   {"version": strings.Repeat("x", 25) + fakeSecret},
		"blab-garbage":   {"initialize": append([]obj{action("write", obj{"text": strings.Repeat("x", 280) + fakeSecret})}, crash()...)},

		"pages": list(
			answered(`{"tools":[{"name":"a0"},{"name":"b0"}],"nextCursor":""}`, obj{"times": 1}),
			answered(`{"tools":[{"name":"a1"},{"name":"b1"}],"nextCursor":"c2"}`, obj{"times": 1}),
			answered(`{"tools":[{"name":"a2"},{"name":"b2"}]}`),
		),
		"same-cursor":        list(answered(`{"tools":[{"name":"a"}],"nextCursor":"c1"}`)),
		"new-cursor":         list(answered(`{"tools":[{"name":"a"}],"nextCursor":"$next"}`)),
		"new-items":          list(answered(`{"tools":[{"name":"a$next"}],"nextCursor":"$next"}`)),
		"no-array":           list(answered(`{"tools":{"name":"a"}}`)),
		"die-on-second-page": list(append([]obj{answered(`{"tools":[{"name":"a"}],"nextCursor":"c1"}`, obj{"times": 1})}, fails(-32603, "no")...)...),
	}
}()

func merged(a, b obj) obj {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}
