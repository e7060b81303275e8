//go:build e2e

package inputs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// keys are the members that name an entry.
var keys = map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}

// wanted returns the odd server's definitions as clients of a revision get them, by their
// listed names.
func wanted(t *testing.T, kind string, modern bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range e2e.OddDefinitions {
		text := d.Want
		if modern && d.Modern != "" {
			text = d.Modern
		}
		if d.Kind != kind || text == "" {
			continue
		}
		var def e2e.Obj
		require.NoError(t, json.Unmarshal([]byte(text), &def))
		own, _ := def[keys[kind]].(string)
		listed := map[string]string{"tools": "odd_" + own, "prompts": "odd/" + own}[kind]
		if listed == "" {
			listed = e2e.In("odd", own)
		}
		def[keys[kind]] = listed
		all[listed] = string(e2e.Marshal(def))
	}
	return all
}

func TestOddDefinitionsAreRepairedOrDroppedBesideAGoodServer(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"stdio", "http", "modern"} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			switch back {
			case "http":
				w.Remote("odd", "/mcp", e2e.OddServer())
			case "modern":
				w.Backend("odd", e2e.Merge(e2e.OddServer(), []e2e.Obj{{"era": "modern"}}))
			default:
				w.Backend("odd", e2e.OddServer())
			}
			w.Backend("good", e2e.Filesystem())
			w.Write()
			legacy, modern := w.Pair("http")
			for _, c := range []*e2e.Client{legacy, modern} {
				for kind, key := range keys {
					want := wanted(t, kind, c == modern)
					got := map[string]string{}
					for _, def := range c.List(kind) {
						if listed := e2e.Str(def, key); strings.Contains(listed, "odd") {
							got[listed] = string(def)
						}
					}
					require.Len(t, got, len(want), kind)
					for listed, def := range want {
						require.JSONEq(t, def, got[listed], listed)
					}
				}
				require.Subset(t, c.Names("tools"), []string{"good_stat", "good_move"})
				for _, tool := range []string{"odd_t6", "odd_o1", "odd_o5"} {
					result := c.Ok("tools/call", e2e.Obj{"name": tool, "arguments": e2e.Obj{}})
					require.JSONEq(t, `{"a":1}`, string(e2e.At(result, "structuredContent")))
				}
			}
		})
	}
}

// definitions is a part of a server in the answer of goblin status --json.
type definitions struct {
	Changed, Dropped int
	First            []struct {
		Kind, Name, Text string
		Dropped          bool
	}
}

func statusOf(t *testing.T, w *e2e.World, server string) (d definitions) {
	t.Helper()
	var status struct {
		Servers []struct {
			Name        string
			Definitions definitions
		}
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("status", "--json")), &status))
	for _, s := range status.Servers {
		if s.Name == server {
			return s.Definitions
		}
	}
	t.Fatalf("no server %q", server)
	return d
}

func TestRepairedDefinitionsAreShownAndLoggedOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"file": filepath.Join(w.Dir, "goblin.log")}
	b := w.Backend("odd", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}},
		"tools":        []json.RawMessage{[]byte(`{"name":"bare"}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`), []byte(`{"title":"nameless"}`)},
	})
	w.Backend("good", e2e.Filesystem())
	w.Write()
	c := w.Bridged()
	require.Contains(t, c.Names("tools"), "odd_bare")

	d := statusOf(t, w, "odd")
	require.Equal(t, 1, d.Changed)
	require.Equal(t, 1, d.Dropped)
	require.Len(t, d.First, 2)
	require.Contains(t, fmt.Sprint(d.First), `{tool bare inputSchema set to {"type":"object"} false}`)
	require.Zero(t, statusOf(t, w, "good"))
	text := w.Succeeds("status")
	require.Contains(t, text, "1 definition changed to satisfy clients, 1 dropped")
	require.Contains(t, text, "ready, 1 changed, 1 dropped")

	doctor := w.Succeeds("doctor", "odd")
	require.Contains(t, doctor, `changed to satisfy clients: tool "bare": inputSchema set to {"type":"object"}`)
	require.Contains(t, doctor, `tool "": entry 2 dropped: no "name"`)
	require.NotContains(t, w.Succeeds("doctor", "good"), "satisfy")
	require.Contains(t, w.Succeeds("list", "tools", "--json"), `inputSchema set to {\"type\":\"object\"}`)

	for _, name := range []string{"more", "last"} {
		b.Do(e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Obj{"name": name}}))
		b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/tools/list_changed"}))
		c.WaitListed("tools", "odd_"+name, true)
	}
	e2e.Eventually(t, "the log of the last list", func() bool { return strings.Contains(readLog(t, w), "name=last ") })
	log := readLog(t, w)
	for _, name := range []string{"bare", "more", "last"} {
		require.Equal(t, 1, strings.Count(log, `server=odd kind=tool name=`+name+` problem="changed to satisfy clients: inputSchema set to`), log)
	}
	require.Equal(t, 1, strings.Count(log, "entry 2 dropped"), log)
}

func readLog(t *testing.T, w *e2e.World) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Dir, "goblin.log"))
	require.NoError(t, err)
	return string(text)
}

func TestAHundredThousandOddDefinitionsAreBounded(t *testing.T) {
	t.Parallel()
	const n = 100_000
	entries := make([]json.RawMessage, n)
	for i := range entries {
		entries[i] = fmt.Appendf(nil, `{"uri":"x:%06d"}`, i)
	}
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"file": filepath.Join(w.Dir, "goblin.log")}
	w.Backend("odd", e2e.Obj{"resources": entries})
	w.Write()
	c := w.Bridged()
	require.Len(t, c.List("resources"), n)
	d := statusOf(t, w, "odd")
	require.Equal(t, n, d.Changed)
	require.Len(t, d.First, 20)
	e2e.Eventually(t, "a summary", func() bool { return strings.Contains(readLog(t, w), "more invalid definitions") })
	require.LessOrEqual(t, strings.Count(readLog(t, w), "satisfy clients"), 20)
	require.Less(t, len(w.Succeeds("doctor", "odd")), 4000)
}

func TestPinsAreOfWhatTheServerSent(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("odd", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}},
		"tools":        []json.RawMessage{[]byte(`{"name":"bare","description":null}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`)},
	})
	w.Write()
	c := w.Bridged()
	require.Equal(t, []string{"odd_bare", "odd_fine"}, ofOdd(c.Names("tools")))
	b.Do(e2e.Do("set", e2e.Obj{"kind": "tools", "entries": []json.RawMessage{[]byte(`{"name":"bare","description":7}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`)}}))
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/tools/list_changed"}))
	c.WaitListed("tools", "odd_bare", false)
	require.Equal(t, []string{"odd_fine"}, ofOdd(c.Names("tools")))
}

func ofOdd(names []string) (own []string) {
	for _, name := range names {
		if strings.HasPrefix(name, "odd_") {
			own = append(own, name)
		}
	}
	return own
}
