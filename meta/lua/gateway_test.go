package lua_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"goblin/meta/lua"
	"goblin/meta/lua/worker"
	"goblin/registry"
)

// runner runs most scripts of the tests, with a compiled program.
var (
	runner  *lua.Runner
	program string
)

// newRunner returns a Runner whose processes are this test binary.
func newRunner() *lua.Runner { return lua.NewRunner(must(os.Executable()), worker.Command) }

func TestMain(m *testing.M) {
	flag.Parse()
	if !racing {
		_ = flag.Set("test.parallel", "4") // most tests wait for processes
	}
	goleak.VerifyTestMain(closing{m})
}

// build compiles goblin for race tests, because a worker with the race detector starts
// slowly.
func build(dir string) (program string, err error) {
	program = filepath.Join(dir, "goblin")
	build := exec.Command("go", "build", "-o", program, "goblin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in releases and other tests
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build goblin: %w\n%s", err, out)
	}
	return program, nil
}

// closing closes the runner before the check for leaks.
type closing struct{ *testing.M }

func (c closing) Run() int {
	program = must(os.Executable())
	if racing {
		dir := must(os.MkdirTemp("", "lua"))
		defer func() { _ = os.RemoveAll(dir) }()
		program = must(build(dir))
	}
	runner = lua.NewRunner(program, worker.Command)
	defer runner.Close()
	return c.M.Run()
}

// fakeGateway is a gateway with a few servers. Tools answer by their listed names.
type fakeGateway struct {
	reg     *registry.Registry
	servers []string
	tools   map[string]func(ctx context.Context, args json.RawMessage) (string, error)

	mu       sync.Mutex
	requests []string // method and params
	progress []string
	running  atomic.Int32
	most     atomic.Int32 // requests at once
}

// answer is an error that a server answered.
type answer struct {
	code    int
	message string
	data    string
}

func (e answer) Error() string              { return e.message }
func (e answer) ErrorCode() int             { return e.code }
func (e answer) ErrorData() json.RawMessage { return json.RawMessage(e.data) }

func structured(s string) string {
	return `{"content":[{"type":"text","text":` + string(must(json.Marshal(s))) + `}],"structuredContent":` + s + `}`
}

func text(s string) string {
	return `{"content":[{"type":"text","text":` + string(must(json.Marshal(s))) + `}]}`
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newFakeGateway(tb testing.TB) *fakeGateway {
	tb.Helper()
	h := &fakeGateway{servers: []string{
		"calculator", "data-server", "my.api", "my-api", "123service", "while", "string", "os", "notes", "cold",
	}}
	h.reg = registry.New(registry.Options{Servers: h.servers})
	list := func(server string, kind registry.Kind, items ...string) {
		var raw [][]byte
		for _, i := range items {
			raw = append(raw, []byte(i))
		}
		if p := h.reg.SetList(server, kind, raw); len(p) > 0 {
			tb.Fatal(p)
		}
	}
	list("calculator", registry.Tool, `{"name":"add","description":"Adds."}`, `{"name":"div"}`)
	list("data-server", registry.Tool, `{"name":"fetch"}`, `{"name":"get-user"}`, `{"name":"a.b"}`, `{"name":"a-b"}`, `{"name":"while"}`)
	for _, s := range []string{"my.api", "my-api", "123service", "while", "string", "os"} {
		list(s, registry.Tool, `{"name":"who"}`)
	}
	list("notes", registry.Tool, `{"name":"echo"}`, `{"name":"link"}`, `{"name":"raw"}`, `{"name":"slow"}`)
	list("notes", registry.Resource, `{"uri":"file:///a.txt","name":"a","mimeType":"text/plain","size":5}`,
		`{"uri":"file:///b.json","name":"b","mimeType":"application/json"}`)
	list("notes", registry.Prompt, `{"name":"greet","description":"Greets."}`)
	h.tools = map[string]func(context.Context, json.RawMessage) (string, error){
		"calculator_add": func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct{ A, B float64 }
			if err := json.Unmarshal(args, &a); err != nil {
				return "", err
			}
			return structured(fmt.Sprintf(`{"sum":%v}`, a.A+a.B)), nil
		},
		"calculator_div": func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct{ A, B float64 }
			_ = json.Unmarshal(args, &a)
			if a.B == 0 {
				return `{"content":[{"type":"text","text":"division by zero"}],"isError":true}`, nil
			}
			return text(fmt.Sprint(a.A / a.B)), nil
		},
		"data-server_fetch": func(context.Context, json.RawMessage) (string, error) {
			return "", answer{-32602, "no such row", `{"code":"ROW","id":7}`}
		},
		"data-server_get-user": func(_ context.Context, args json.RawMessage) (string, error) { return text(string(args)), nil },
		"notes_echo":           func(_ context.Context, args json.RawMessage) (string, error) { return structured(string(args)), nil },
		"notes_raw": func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct{ Result string }
			_ = json.Unmarshal(args, &a)
			return a.Result, nil
		},
		"notes_link": func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"text","text":"see"},{"type":"resource_link","uri":"mcp://notes/file:///a.txt","name":"a"}]}`, nil
		},
		"notes_slow": func(ctx context.Context, _ json.RawMessage) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
		"cold/warm": func(context.Context, json.RawMessage) (string, error) { return text("up by now"), nil },
	}
	for _, s := range []string{"my.api", "my-api", "123service", "while", "string", "os"} {
		for e := range h.reg.Load().Server(s, registry.Tool) {
			h.tools[e.Listed] = func(context.Context, json.RawMessage) (string, error) { return text(s), nil }
		}
	}
	return h
}

func (h *fakeGateway) Snapshot() *registry.Snapshot { return h.reg.Load() }
func (h *fakeGateway) Servers() []string            { return h.servers }

func (h *fakeGateway) Progress(done int, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, fmt.Sprint(done, " ", message))
}

func (h *fakeGateway) Search(_ context.Context, query string, o lua.SearchOptions) ([]byte, error) {
	return fmt.Appendf(nil, `[{"name":"calculator_add","query":%q,"kind":%q,"server":%q,"limit":%d}]`, query, o.Kind, o.Server, o.Limit), nil
}

func (h *fakeGateway) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	now := h.running.Add(1)
	defer h.running.Add(-1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	h.mu.Lock()
	h.requests = append(h.requests, method+" "+string(params))
	h.mu.Unlock()
	var p struct {
		Name, URI string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	switch method {
	case "tools/call":
		if f := h.tools[p.Name]; f != nil {
			s, err := f(ctx, p.Arguments)
			return []byte(s), err
		}
	case "resources/read":
		switch p.URI {
		case "mcp://notes/file:///a.txt":
			return []byte(`{"contents":[{"uri":"mcp://notes/file:///a.txt","mimeType":"text/plain","text":"hello"}]}`), nil
		case "mcp://notes/file:///b.json":
			return []byte(`{"contents":[{"uri":"mcp://notes/file:///b.json","mimeType":"application/json","text":"{\"n\":[1,2]}"}]}`), nil
		case "mcp://notes/file:///c.png":
			return []byte(`{"contents":[{"uri":"mcp://notes/file:///c.png","mimeType":"image/png","blob":"AAEC"}]}`), nil
		}
		return nil, answer{-32002, "RESOURCE_NOT_FOUND: Resource not found: " + p.URI, `{"code":"RESOURCE_NOT_FOUND"}`}
	case "prompts/get":
		return fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, strings.TrimSpace(p.Name+" "+string(p.Arguments))), nil
	}
	return nil, answer{-32602, "unknown " + method + " " + p.Name, ""}
}
