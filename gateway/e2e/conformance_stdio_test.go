//go:build conformance

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The suite speaks HTTP only. Here a client over stdio does what its scenarios
// do, under their names, with the same server: alone and behind Goblin.

// probe is a client in one scenario and what it found.
type probe struct {
	*client
	t      *testing.T
	modern bool
	found  map[string]bool // by check: the server did as it should
}

// check notes what one of the scenario's checks found; of a check that is made
// several times, all have to be good.
func (p *probe) check(id string, good bool) {
	before, made := p.found[id]
	p.found[id] = good && (before || !made)
}

// everything is what a client can be asked for.
var everything = obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{}}

// openProbe makes a client of a process that speaks MCP on its pipes.
func openProbe(t *testing.T, c *client, revision string) *probe {
	t.Helper()
	p := &probe{client: c, t: t, modern: revision == modernRevision, found: map[string]bool{}}
	c.caps = everything
	c.reply = func(ask message) (any, any) { return answerTo(ask.Method, ask.Params), nil }
	if !p.modern {
		p.check("server-initialize", str(c.init(), "protocolVersion") == revision)
	}
	return p
}

// answerTo is what the user of the probe says to a server's question.
func answerTo(method string, params json.RawMessage) any {
	switch method {
	case "sampling/createMessage":
		return obj{"role": "assistant", "content": obj{"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}
	case "roots/list":
		return obj{"roots": []obj{{"uri": "file:///test/root", "name": "Test Root"}}}
	}
	content := obj{}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(at(params, "requestedSchema", "properties"), &properties)
	for name, schema := range properties {
		switch str(schema, "type") {
		case "boolean":
			content[name] = true
		case "integer", "number":
			content[name] = 7
		case "array":
			content[name] = []string{firstOf(at(schema, "items"))}
		default:
			content[name] = firstOf(schema)
		}
	}
	return obj{"action": "accept", "content": content}
}

// firstOf is a value that fits a schema of strings.
func firstOf(schema json.RawMessage) string {
	for _, path := range [][]any{{"enum", 0}, {"oneOf", 0, "const"}, {"anyOf", 0, "const"}} {
		if s := str(schema, path...); s != "" {
			return s
		}
	}
	return "Alice"
}

// ask sends a request as the revision has it; members of _meta in params win.
func (p *probe) ask(method string, params obj) message {
	p.t.Helper()
	return p.end(p.asking(method, params))
}

func (p *probe) asking(method string, params obj) (id string) {
	full := obj{}
	for k, v := range params {
		full[k] = v
	}
	if p.modern {
		meta := obj{
			protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": p.caps,
			protocolPrefix + "clientInfo": obj{"name": "probe", "version": "1"},
		}
		own, _ := params["_meta"].(obj)
		for k, v := range own {
			meta[k] = v
		}
		full["_meta"] = meta
	}
	return p.begin(method, full)
}

func (p *probe) tool(name string, more ...obj) message {
	p.t.Helper()
	return p.ask("tools/call", merge(obj{"name": name, "arguments": obj{}}, more))
}

func (p *probe) prompt(name string, more ...obj) message {
	p.t.Helper()
	return p.ask("prompts/get", merge(obj{"name": name}, more))
}

func (p *probe) read(uri string) message {
	p.t.Helper()
	return p.ask("resources/read", obj{"uri": uri})
}

func code(m message) string { return string(at(m.Error, "code")) }

// has reports whether one of the values has text at each of the paths.
func has(all []json.RawMessage, kind string, members ...string) bool {
	for _, v := range all {
		good := kind == "" || str(v, "type") == kind
		for _, name := range members {
			value := v
			for _, step := range strings.Split(name, ".") {
				value = at(value, step)
			}
			good = good && str(value) != ""
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
			if at(v, name) == nil {
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

// overHTTPOnly are the scenarios that have no meaning over stdio, and why.
var overHTTPOnly = map[string]string{
	"server-sse-multiple-streams": "the streams of several POSTs",
	"dns-rebinding-protection":    "the Host and Origin headers",
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
				direct := openProbe(t, newWorld(t).pipeTo(server), r.revision)
				s.run(direct)
				w := newWorld(t)
				b, _ := w.fake("suite", obj{})
				b.conf["command"] = server
				through := openProbe(t, w.pipe("stdio", "--standalone"), r.revision)
				s.run(through)
				require.NotEmpty(t, direct.found)
				good := true
				for id, ok := range direct.found {
					if !ok {
						t.Logf("direct: %s failed, through Goblin: %v", id, through.found[id])
					}
					if ok && !through.found[id] {
						good = false
						t.Logf("through Goblin: %s failed", id)
					}
				}
				require.True(t, good, "not as good as direct:\n%s", through.story())
			})
		}
	}
}
