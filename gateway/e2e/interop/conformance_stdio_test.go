//go:build conformance

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"goblin/gateway/e2e"
)

// The suite only speaks HTTP. Here a client over stdio runs the steps of its scenarios
// under their names, with the same server: alone and behind Goblin.

// probe is a client in one scenario with its results.
type probe struct {
	*e2e.Client
	t      *testing.T
	modern bool
	found  map[string]bool // by check: whether the server passed
}

// check records a check's result. A repeated check must pass every time.
func (p *probe) check(id string, good bool) {
	before, made := p.found[id]
	p.found[id] = good && (before || !made)
}

// everything contains all capabilities of clients.
var everything = e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}, "roots": e2e.Obj{}}

// openProbe makes a client of a process that speaks MCP on its pipes.
func openProbe(t *testing.T, c *e2e.Client, revision string) *probe {
	t.Helper()
	p := &probe{Client: c, t: t, modern: revision == e2e.ModernRevision, found: map[string]bool{}}
	c.Caps = everything
	c.Reply = func(ask e2e.Message) (any, any) { return answerTo(ask.Method, ask.Params), nil }
	if !p.modern {
		p.check("server-initialize", e2e.Str(c.Init(), "protocolVersion") == revision)
	}
	return p
}

// answerTo returns the answer of the probe's user to a request from the server.
func answerTo(method string, params json.RawMessage) any {
	switch method {
	case "sampling/createMessage":
		return e2e.Obj{"role": "assistant", "content": e2e.Obj{"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}
	case "roots/list":
		return e2e.Obj{"roots": []e2e.Obj{{"uri": "file:///test/root", "name": "Test Root"}}}
	}
	content := e2e.Obj{}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(e2e.At(params, "requestedSchema", "properties"), &properties)
	for name, schema := range properties {
		switch e2e.Str(schema, "type") {
		case "boolean":
			content[name] = true
		case "integer", "number":
			content[name] = 7
		case "array":
			content[name] = []string{firstOf(e2e.At(schema, "items"))}
		default:
			content[name] = firstOf(schema)
		}
	}
	return e2e.Obj{"action": "accept", "content": content}
}

// firstOf returns a value that fits a schema of strings.
func firstOf(schema json.RawMessage) string {
	for _, path := range [][]any{{"enum", 0}, {"oneOf", 0, "const"}, {"anyOf", 0, "const"}} {
		if s := e2e.Str(schema, path...); s != "" {
			return s
		}
	}
	return "Alice"
}

// ask sends a request in the form of the revision. Members of _meta in params take
// precedence.
func (p *probe) ask(method string, params e2e.Obj) e2e.Message {
	p.t.Helper()
	return p.End(p.asking(method, params))
}

func (p *probe) asking(method string, params e2e.Obj) (id string) {
	full := e2e.Obj{}
	for k, v := range params {
		full[k] = v
	}
	if p.modern {
		meta := e2e.Obj{
			e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": p.Caps,
			e2e.ProtocolPrefix + "clientInfo": e2e.Obj{"name": "probe", "version": "1"},
		}
		own, _ := params["_meta"].(e2e.Obj)
		for k, v := range own {
			meta[k] = v
		}
		full["_meta"] = meta
	}
	return p.Begin(method, full)
}

func (p *probe) tool(name string, more ...e2e.Obj) e2e.Message {
	p.t.Helper()
	return p.ask("tools/call", e2e.Merge(e2e.Obj{"name": name, "arguments": e2e.Obj{}}, more))
}

func (p *probe) prompt(name string, more ...e2e.Obj) e2e.Message {
	p.t.Helper()
	return p.ask("prompts/get", e2e.Merge(e2e.Obj{"name": name}, more))
}

func (p *probe) read(uri string) e2e.Message {
	p.t.Helper()
	return p.ask("resources/read", e2e.Obj{"uri": uri})
}

func code(m e2e.Message) string { return string(e2e.At(m.Error, "code")) }

// has reports whether one of the values has text at each of the paths.
func has(all []json.RawMessage, kind string, members ...string) bool {
	for _, v := range all {
		good := kind == "" || e2e.Str(v, "type") == kind
		for _, name := range members {
			value := v
			for _, step := range strings.Split(name, ".") {
				value = e2e.At(value, step)
			}
			good = good && e2e.Str(value) != ""
		}
		if good {
			return true
		}
	}
	return false
}

// allHave reports whether there are values and all have these members.
func allHave(all []json.RawMessage, members ...string) bool {
	for _, v := range all {
		for _, name := range members {
			if e2e.At(v, name) == nil {
				return false
			}
		}
	}
	return len(all) > 0
}

// TestConformanceScenariosAreAllRunOverStdio compares the table with the suite's lists.
func TestConformanceScenariosAreAllRunOverStdio(t *testing.T) {
	for _, r := range requirements {
		text, err := os.ReadFile(filepath.Join(npm(t), "node_modules", "@modelcontextprotocol", "conformance", "requirements", r.revision+".yaml"))
		require.NoError(t, err)
		var lists struct{ Server []string }
		require.NoError(t, yaml.Unmarshal(text, &lists))
		require.Len(t, lists.Server, r.scored)
		for _, name := range lists.Server {
			_, run := scenarios[name]
			require.True(t, run != (overHTTPOnly[name] != ""), name)
		}
	}
}

// overHTTPOnly are scenarios without a meaning over stdio, with the reasons.
var overHTTPOnly = map[string]string{
	"server-sse-multiple-streams": "the streams of several POSTs",
	"dns-rebinding-protection":    "the Host and Origin headers",
}

// translated are the checks, by scenario, that stateless clients lose if Goblin uses only
// the older era (era: auto).
var translated = map[string][]string{
	"input-required-result-basic-elicitation":       {"sep-2322-elicitation-incomplete", "sep-2322-elicitation-complete"},
	"input-required-result-ignore-extra-params":     {"sep-2322-ignore-unexpected-params"},
	"input-required-result-capability-check":        {"sep-2322-respect-client-capabilities"},
	"input-required-result-multiple-input-requests": {"sep-2322-multiple-inputs-incomplete", "sep-2322-multiple-inputs-complete"},
	"input-required-result-multi-round":             {"sep-2322-multi-round-r2", "sep-2322-multi-round-r3"},
	"server-stateless":                              {"sep-2575-server-rejects-undeclared-capability"},
}

func TestConformanceOverStdioIsAsGoodAsDirect(t *testing.T) {
	server := conformServer(t)
	for _, r := range requirements {
		for name, s := range scenarios {
			if !s.of(r.revision) {
				continue
			}
			t.Run(r.revision+"/"+name, func(t *testing.T) {
				t.Parallel()
				direct := openProbe(t, e2e.NewWorld(t).PipeTo(server), r.revision)
				s.run(direct)
				require.NotEmpty(t, direct.found)
				for _, era := range []string{"both", "auto"} {
					w := e2e.NewWorld(t)
					b, _ := w.Fake("suite", e2e.Obj{})
					b.Conf["command"], b.Conf["era"] = server, era
					through := openProbe(t, w.Pipe("stdio", "--standalone"), r.revision)
					s.run(through)
					var worse []string
					for id, ok := range direct.found {
						if !ok {
							t.Logf("direct: %s failed, through Goblin (era: %s): %v", id, era, through.found[id])
						}
						if ok && !through.found[id] {
							worse = append(worse, id)
						}
					}
					if era == "auto" && r.revision == e2e.ModernRevision {
						require.Subset(t, translated[name], worse, "through Goblin (era: auto):\n%s", through.Story())
					} else {
						require.Empty(t, worse, "through Goblin (era: %s):\n%s", era, through.Story())
					}
				}
			})
		}
	}
}
