package lua

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"goblin/meta/lua/wire"
	"goblin/registry"
)

// nobody answers everything.
type nobody struct{ reg *registry.Registry }

func (n nobody) Snapshot() *registry.Snapshot { return n.reg.Load() }
func (nobody) Servers() []string              { return nil }
func (nobody) Progress(int, string)           {}
func (nobody) Search(context.Context, string, SearchOptions) ([]byte, error) {
	return []byte("[]"), nil
}

func (nobody) Request(_ context.Context, _ string, params []byte) ([]byte, error) {
	if !json.Valid(params) {
		panic("params that are no JSON: " + string(params))
	}
	return []byte("{}"), nil
}

// FuzzProcess takes what a process says for what a script's process said.
func FuzzProcess(f *testing.F) {
	frames := func(heads ...any) []byte {
		var b bytes.Buffer
		for _, head := range heads {
			if err := wire.Write(&b, head, []byte(`{"a":1}`)); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes()
	}
	for _, ask := range []string{
		wire.AskCall, wire.AskRead, wire.AskPrompt, wire.AskSearch, wire.AskTool, wire.AskTools, wire.AskList, wire.AskMemory, "else",
	} {
		f.Add(frames(wire.ToGoblin{ID: 1, Ask: ask, Server: "s", Name: "n", Kind: "tool", Limit: 5}, wire.ToGoblin{End: &wire.End{JSON: 7}}))
	}
	f.Add(frames(wire.ToGoblin{End: &wire.End{JSON: 3, Printed: 2, Failure: wire.Runtime}}))
	f.Add(frames(wire.ToGoblin{End: &wire.End{JSON: -3, Printed: 1 << 40}}))
	f.Add(append([]byte{0, 0, 0, 2, 0x7f, 0, 0, 0, 0, 0, 0, 0}, "{}"...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	reg.SetList("s", registry.Tool, [][]byte{[]byte(`{"name":"n"}`)})
	f.Fuzz(func(t *testing.T, said []byte) {
		r := NewRunner("none")
		l := Limits{Memory: 1 << 20, Output: 1 << 10, Calls: 3}.WithDefaults()
		ctx, cancel := context.WithCancel(t.Context())
		s := &session{runner: r, host: nobody{reg}, limits: l, ctx: ctx, in: io.Discard}
		ended, err := s.listen(bytes.NewReader(said))
		cancel()
		s.leave()
		r.Close()
		switch {
		case err != nil:
		case len(ended.json) > 0 && !json.Valid(ended.json):
			t.Fatalf("no JSON: %q", ended.json)
		case int64(len(ended.json)+len(ended.printed)) > l.Output:
			t.Fatal("too much")
		}
		if r.moving.Load() != 0 || len(r.full) != 0 || s.calls > l.Calls+1 {
			t.Fatalf("%d bytes, %d at full, %d calls", r.moving.Load(), len(r.full), s.calls)
		}
	})
}
