package meta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/meta"
	"goblin/meta/lua"
	"goblin/meta/lua/worker"
	"goblin/registry"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// scriptCommand starts this test binary as the process of a script.
var scriptCommand = func() []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{self, worker.Command}
}()

// newTools returns tools whose processes exit with the test.
func newTools(t testing.TB, o meta.Options) *meta.Tools {
	o.ScriptCommand = scriptCommand
	m := meta.New(o)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		m.Run(over)
	})
	return m
}

var exampleLists = map[string]map[registry.Kind][]string{
	"files": {
		registry.Tool: {
			`{"name":"read_file","title":"Read a file","description":"Reads a file as text.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`,
			`{"name":"delete_file","description":"Removes a file for good.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`,
		},
		registry.Resource: {
			`{"uri":"file:///logs/app.log","name":"app.log","description":"What the application says","mimeType":"text/plain","size":12}`,
			`{"uri":"file:///config/app.json","name":"app.json","mimeType":"application/json"}`,
			`{"uri":"file:///logo.png","name":"logo","title":"The logo","mimeType":"image/png","size":4096}`,
		},
		registry.Template: {`{"uriTemplate":"file:///{+path}","name":"any file","description":"Every file there is"}`},
	},
	"clock": {
		registry.Tool:   {`{"name":"time_in","description":"Tells the time in a zone.","inputSchema":{"type":"object","properties":{"zone":{"type":"string"}}}}`},
		registry.Prompt: {`{"name":"meet","title":"Find a meeting time","description":"Looks for an hour that suits two places.","arguments":[{"name":"here","required":true}]}`},
		registry.Skill:  {`{"uri":"skill://minutes/SKILL.md","frontmatter":{"name":"minutes","description":"Writes the minutes of a meeting"}}`},
	},
	"data-server": {
		registry.Tool:     {`{"name":"query","description":"Asks the database.","inputSchema":{"type":"object"}}`},
		registry.Resource: {`{"uri":"db://users/42","name":"user 42"}`},
	},
}

var servers = []string{"files", "clock", "data-server"}

func newExampleCatalog(t testing.TB) *registry.Registry {
	t.Helper()
	r := registry.New(registry.Options{Servers: servers})
	for server, kinds := range exampleLists {
		for kind, raw := range kinds {
			var items [][]byte
			for _, one := range raw {
				items = append(items, []byte(one))
			}
			require.Empty(t, r.SetList(server, kind, items))
		}
		r.SetState(server, registry.ServerState{State: registry.StateReady, Transport: "stdio", ServerTitle: "The " + server, Listed: true})
	}
	return r
}

type toolResult struct {
	Content []struct {
		Type, Text string
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// caller calls the meta tools of a registry.
type caller struct {
	t testing.TB
	r *registry.Registry
}

// newCaller adds all meta tools to a registry.
func newCaller(t testing.TB, r *registry.Registry, ask meta.AskFunc) caller {
	t.Helper()
	m := newTools(t, meta.Options{Registry: r, Ask: ask, Lua: lua.Limits{Calls: 100, Timeout: time.Minute}})
	require.NoError(t, m.Add())
	return caller{t, r}
}

func (c caller) raw(name, args string) []byte {
	c.t.Helper()
	found, err := c.r.ResolveTool(name)
	require.NoError(c.t, err)
	out, err := found.Local.Tool.Call(context.Background(), []byte(args))
	require.NoError(c.t, err)
	return out
}

func (c caller) call(name, args string) (a toolResult) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal(c.raw(name, args), &a))
	require.NotEmpty(c.t, a.Content)
	return a
}

// failed returns the text of a refused call.
func (c caller) failed(name, args string) string {
	c.t.Helper()
	a := c.call(name, args)
	require.True(c.t, a.IsError, a.Content[0].Text)
	require.Nil(c.t, a.Structured)
	return a.Content[0].Text
}

// field returns a member of each entry of a list in an answer.
func (c caller) field(name, args, list, member string) (values []string) {
	c.t.Helper()
	a := c.call(name, args)
	require.False(c.t, a.IsError, a.Content[0].Text)
	var all map[string]json.RawMessage
	require.NoError(c.t, json.Unmarshal(a.Structured, &all))
	var cards []map[string]any
	require.NoError(c.t, json.Unmarshal(all[list], &cards))
	for _, one := range cards {
		values = append(values, fmt.Sprint(one[member]))
	}
	return values
}
