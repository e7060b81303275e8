//go:build e2e

// Package replay tests gateways that answer from recordings, and calls that are sent again.
package replay

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

type Obj = e2e.Obj

// tape is a recording of one server, "s". Each line is a second after the last one.
type tape struct {
	t      *testing.T
	w      *e2e.World
	path   string
	lines  []Obj
	number int
	now    time.Time
}

// newTape returns a recording with a header and a server with the tools "one" and "two".
func newTape(t *testing.T, server ...Obj) *tape {
	t.Helper()
	w := e2e.NewWorld(t)
	r := &tape{t: t, w: w, path: filepath.Join(w.Dir, "tape.jsonl"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.add(Obj{"type": "recording", "version": 1, "goblin": "0.1.0", "bodies": true, "settings": Obj{"servers": Obj{"s": Obj{}}}})
	r.add(e2e.Merge(Obj{
		"type": "server", "server": "s", "handshake": Obj{
			"protocolVersion": "2025-06-18", "serverInfo": Obj{"name": "recorded", "version": "1"},
			"capabilities": Obj{"tools": Obj{"listChanged": true}, "resources": Obj{"subscribe": true}, "logging": Obj{}, "completions": Obj{}},
		},
		"lists": Obj{"tools": []Obj{e2e.Tool("one"), e2e.Tool("two")}, "resources": []Obj{e2e.Resource("file:///a")}},
	}, server))
	return r
}

func (r *tape) add(line Obj) {
	r.now = r.now.Add(time.Second)
	if line["time"] == nil {
		line["time"] = r.now.Format(time.RFC3339Nano)
	}
	r.lines = append(r.lines, line)
}

// call adds a call of a tool with its answer. more is merged into its line.
func (r *tape) call(tool string, arguments, answer any, more ...Obj) (number int) {
	return r.request("tools/call", "s_"+tool, tool, Obj{"name": "s_" + tool, "arguments": arguments}, answer, more...)
}

func (r *tape) request(method, name, original string, params, answer any, more ...Obj) (number int) {
	r.number++
	r.add(e2e.Merge(Obj{
		"type": "request", "n": r.number, "server": "s", "method": method, "name": name, "original": original, "outcome": "success",
		"answered": true, "took": 1, "params": params, "answer": answer,
	}, more))
	return r.number
}

// within adds a line with the time of the next call's start, which caused it.
func (r *tape) within(line Obj) {
	r.add(e2e.Merge(Obj{"server": "s", "direction": "client", "parent": r.number + 1, "time": r.now.Add(time.Second + time.Millisecond).Format(time.RFC3339Nano)}, []Obj{line}))
	r.now = r.now.Add(-time.Second)
}

func (r *tape) write() string {
	r.t.Helper()
	var text []byte
	for _, l := range r.lines {
		text = append(append(text, e2e.Marshal(l)...), '\n')
	}
	require.NoError(r.t, os.WriteFile(r.path, text, 0o600))
	return r.path
}

// client returns an initialized client of goblin stdio --replay.
func (r *tape) client(args ...string) *e2e.Client {
	r.t.Helper()
	c := r.w.Pipe(append([]string{"stdio", "--replay", r.write()}, args...)...)
	c.Init()
	return c
}

func text(s string) Obj { return Obj{"content": []Obj{{"type": "text", "text": s}}} }

func arguments(tool string, a any) Obj { return Obj{"name": "s_" + tool, "arguments": a} }

// miss calls a tool that was not called so, and returns the message and the data.
func miss(t *testing.T, c *e2e.Client, params any) (message string, data json.RawMessage) {
	t.Helper()
	result := c.Request("tools/call", params).Result
	data = e2e.At(result, "_meta", "goblin/error")
	require.Equal(t, "REPLAY_MISS", e2e.Str(data, "code"), "%s", result)
	require.Equal(t, "true", string(e2e.At(result, "isError")))
	return e2e.Str(result, "content", 0, "text"), data
}

// sideFile writes a body beside the recording and returns its reference.
func (r *tape) sideFile(body []byte) []Obj {
	r.t.Helper()
	sum := sha256.Sum256(body)
	name := hex.EncodeToString(sum[:])
	folder := filepath.Join(filepath.Dir(r.path), "bodies", name[:2])
	require.NoError(r.t, os.MkdirAll(folder, 0o700))
	f, err := os.Create(filepath.Join(folder, name))
	require.NoError(r.t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(body)
	require.NoError(r.t, err)
	require.NoError(r.t, z.Close())
	require.NoError(r.t, f.Close())
	return []Obj{{"$file": name, "size": len(body)}}
}

func n(i int) Obj { return Obj{"n": i} }

func label(i int) string { return fmt.Sprintf("answer %d", i) }
