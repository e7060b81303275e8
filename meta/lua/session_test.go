package lua

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"goblin/meta/lua/worker"
	"goblin/registry"
)

// emptyHost answers every request with an empty result.
type emptyHost struct{ reg *registry.Registry }

func (n emptyHost) Snapshot() *registry.Snapshot { return n.reg.Load() }
func (emptyHost) Servers() []string              { return nil }
func (emptyHost) Progress(int, string)           {}
func (emptyHost) Search(context.Context, string, SearchOptions) ([]byte, error) {
	return []byte("[]"), nil
}

func (emptyHost) Request(_ context.Context, _ string, params []byte) ([]byte, error) {
	if !json.Valid(params) {
		panic("params that are no JSON: " + string(params))
	}
	return []byte("{}"), nil
}

// FuzzProcess checks any output of a script's process.
func FuzzProcess(f *testing.F) {
	frames := func(heads ...any) []byte {
		var b bytes.Buffer
		for _, head := range heads {
			if err := worker.WriteFrame(&b, head, []byte(`{"a":1}`)); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes()
	}
	for _, ask := range []string{
		worker.AskCall, worker.AskRead, worker.AskPrompt, worker.AskSearch, worker.AskTool, worker.AskList, worker.AskMemory, worker.NotifyPrint, worker.NotifyResult, "else",
	} {
		f.Add(frames(worker.ScriptMessage{ID: 1, Ask: ask, Server: "s", Name: "n", Kind: "tool", Limit: 5}, worker.ScriptMessage{End: &worker.Outcome{}}))
	}
	f.Add(frames(worker.ScriptMessage{End: &worker.Outcome{Failure: worker.Runtime}}))
	f.Add(append([]byte{0, 0, 0, 2, 0x7f, 0, 0, 0, 0, 0, 0, 0}, "{}"...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	reg.SetList("s", registry.Tool, [][]byte{[]byte(`{"name":"n"}`)})
	f.Fuzz(func(t *testing.T, said []byte) {
		r := NewRunner("none")
		l := Limits{Memory: 1 << 20, Output: 1 << 10, Calls: 3}.withDefaults()
		s := &session{runner: r, host: emptyHost{reg}, limits: l, in: io.Discard}
		s.ctx, s.cancel = context.WithCancelCause(t.Context())
		failed, _ := s.listen(bytes.NewReader(said))
		s.cancel(nil)
		s.cancelRequests()
		r.Close()
		switch {
		case s.result.JSON != nil && !json.Valid(s.result.JSON):
			t.Fatalf("not JSON: %q", s.result.JSON)
		case s.outputLeft() < 0, failed != nil && int64(len(failed.Message)) > max(s.outputLeft(), worker.MaxMessage):
			t.Fatal("too much")
		}
		if r.inFlightBytes.Load() != 0 || len(r.largeSlots) != 0 || s.calls > l.Calls {
			t.Fatalf("%d bytes, %d at full, %d calls", r.inFlightBytes.Load(), len(r.largeSlots), s.calls)
		}
	})
}
