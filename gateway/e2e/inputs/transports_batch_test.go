//go:build e2e

package inputs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// batcher is a client that sends raw frames and records each received frame.
type batcher struct {
	*e2e.Client
	send func(frame string)
	got  func() []string // so far, without notifications
}

// newBatcher makes a batcher of a client on a stream.
func newBatcher(t *testing.T, c *e2e.Client, revision string) *batcher {
	c.Ok("initialize", e2e.Obj{"protocolVersion": revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
	c.Notify("notifications/initialized", nil)
	c.WaitListed("tools", "b_t", true)
	var mu sync.Mutex
	var single []string
	c.Update(func() { clear(c.Replies) })
	b := &batcher{Client: c, send: func(frame string) { c.Write([]byte(frame)) }}
	b.got = func() []string {
		mu.Lock()
		defer mu.Unlock()
		c.Update(func() { // the client treats arrays as unexpected
			single = append(single, c.Stray...)
			c.Stray = nil
			for _, all := range c.Replies {
				for _, m := range all {
					single = append(single, m.Raw)
				}
			}
			clear(c.Replies)
		})
		return single
	}
	return b
}

// answers sends a frame and waits for n answers. It returns them by id, and the number of
// frames in which they arrived.
func (b *batcher) answers(t *testing.T, frame string, n int) (byID map[string]e2e.Message, frames int) {
	t.Helper()
	before := len(b.got())
	b.send(frame)
	byID = map[string]e2e.Message{}
	e2e.Eventually(t, fmt.Sprintf("%d answers to %.200s", n, frame), func() bool {
		clear(byID)
		came := b.got()[before:]
		frames = len(came)
		total := 0
		for _, text := range came {
			all := []json.RawMessage{json.RawMessage(text)}
			if strings.HasPrefix(text, "[") {
				require.NoError(t, json.Unmarshal([]byte(text), &all))
			}
			for _, one := range all {
				var m e2e.Message
				require.NoError(t, json.Unmarshal(one, &m))
				m.Raw = string(one)
				byID[string(m.ID)+strings.Repeat("'", answersTo(byID, string(m.ID)))] = m
				total++
			}
		}
		return total >= n
	})
	return byID, frames
}

// answersTo returns how many answers have an id already.
func answersTo(byID map[string]e2e.Message, id string) (n int) {
	for id2 := range byID {
		if strings.TrimRight(id2, "'") == id {
			n++
		}
	}
	return n
}

func batchedCall(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`
}

func batchedPing(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

const batchedNote = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`

func batchFronts() map[string]func(w *e2e.World) *e2e.Client {
	return map[string]func(w *e2e.World) *e2e.Client{
		"standalone": func(w *e2e.World) *e2e.Client { return w.Pipe("stdio", "--standalone") },
		"bridge":     func(w *e2e.World) *e2e.Client { w.AllowDaemon = true; return w.Pipe("stdio") },
		"socket":     func(w *e2e.World) *e2e.Client { return w.Socket() },
	}
}

func newBatchWorld(t *testing.T) (*e2e.World, *e2e.Backend) {
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})),
	}})
	return w, b
}

func TestEveryRequestOfABatchIsAnswered(t *testing.T) {
	for name, connect := range batchFronts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, backend := newBatchWorld(t)
			b := newBatcher(t, connect(w), "2025-03-26")

			all, frames := b.answers(t, `[`+batchedPing("1")+`, `+batchedCall(`"two"`, "b_t")+`,`+batchedNote+`,`+batchedCall("3", "b_none")+"]", 3)
			require.Equal(t, 1, frames, "one array")
			require.Contains(t, all["1"].Raw, `"result":{}`)
			require.Contains(t, all[`"two"`].Raw, "b:t:")
			require.Contains(t, all["3"].Raw, "-32602")

			// Invalid members don't affect the others.
			all, frames = b.answers(t, `[1,{"foo":"bar"},`+batchedPing("4")+`,{"jsonrpc":"2.0","id":5,"method":7},"x",`+batchedPing("4")+`]`, 6)
			require.Equal(t, 1, frames)
			require.Len(t, all, 6)
			require.Contains(t, all["4"].Raw+all["4'"].Raw, `"result":{}`, "an id that is used twice")
			require.Contains(t, all["5"].Raw, "-32600")
			require.Contains(t, all["null"].Raw, "-32600")

			// Messages that a batch must not contain, and invalid batches.
			all, _ = b.answers(t, `[`+strings.ReplaceAll(e2e.InitBody, `"id":1`, `"id":6`)+`,`+batchedPing("7")+`]`, 2)
			require.Contains(t, all["6"].Raw, "-32600")
			require.Contains(t, all["7"].Raw, `"result":{}`)
			all, _ = b.answers(t, `[]`, 1)
			require.Contains(t, all["null"].Raw, "-32600")
			all, _ = b.answers(t, `[`+strings.Repeat("1,", 100_000)+`1]`, 1)
			require.Contains(t, all["null"].Raw, "send smaller batches")
			all, _ = b.answers(t, `[`+batchedPing("8")+`,{]`, 1)
			require.Contains(t, all["null"].Raw, "-32700")

			// Notifications have no answer, so the next answer belongs to the ping.
			all, frames = b.answers(t, `[`+batchedNote+`,`+batchedNote+`]`+"\n"+batchedPing("9"), 1)
			require.Equal(t, 1, frames)
			require.Contains(t, all["9"].Raw, `"result":{}`)

			// Answers wait for the slowest; others are served meanwhile.
			b.send(`[` + batchedCall("10", "b_slow") + `,` + batchedPing("11") + `]`)
			backend.WaitEvent("wait", "go")
			all, _ = b.answers(t, batchedPing("12"), 1)
			require.Contains(t, all["12"].Raw, `"result":{}`)
			answered := len(b.got())
			backend.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			e2e.Eventually(t, "the array", func() bool { return len(b.got()) > answered })
			require.Regexp(t, `^\[.*"id":11,.*"id":10,`, b.got()[answered])
		})
	}
}

func TestACancelledRequestOfABatchHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w, backend := newBatchWorld(t)
	b := newBatcher(t, w.Pipe("stdio", "--standalone"), "2025-03-26")
	b.send(`[` + batchedCall("1", "b_slow") + `,` + batchedPing("2") + `]`)
	backend.WaitEvent("wait", "go")
	all, _ := b.answers(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 1)
	require.Len(t, all, 1)
	require.Contains(t, all["2"].Raw, `"result":{}`)
}

func TestRequestsOfABatchFailWhenTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	w, backend := newBatchWorld(t)
	w.AllowDaemon = true
	b := newBatcher(t, w.Pipe("stdio"), "2025-03-26")
	b.send(`[` + batchedCall("1", "b_slow") + `,` + batchedCall("2", "b_slow") + `]`)
	backend.WaitEvents("wait", "go", 2)
	before := len(b.got())
	daemon, err := os.FindProcess(w.DaemonPID())
	require.NoError(t, err)
	require.NoError(t, daemon.Kill())
	e2e.Eventually(t, "their answers", func() bool { return len(b.got()) >= before+2 })
	text := strings.Join(b.got()[before:], "\n")
	require.Contains(t, text, `"id":1,`)
	require.Contains(t, text, `"id":2,`)
	all, _ := b.answers(t, `[`+batchedPing("3")+`]`, 1)
	require.Contains(t, all["3"].Raw, `"result":{}`)
}

func TestBatchesOfOtherRevisionsAreRefusedRequestByRequest(t *testing.T) {
	for name, connect := range batchFronts() {
		for _, revision := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
			t.Run(name+" "+revision, func(t *testing.T) {
				t.Parallel()
				w, backend := newBatchWorld(t)
				b := newBatcher(t, connect(w), revision)
				all, _ := b.answers(t, `[`+batchedCall("1", "b_t")+`,`+batchedNote+`,`+batchedPing(`"two"`)+`,7]`, 3)
				for _, id := range []string{"1", `"two"`, "null"} {
					require.Contains(t, all[id].Raw, "-32600", id)
				}
				require.Contains(t, all["1"].Raw, "2025-03-26")
				require.Empty(t, backend.Received("tools/call"))
			})
		}
	}
}

func TestBatchesOverHTTP(t *testing.T) {
	t.Parallel()
	w, backend := newBatchWorld(t)
	s := w.Serve()
	begin := func(revision string) map[string]string {
		got := s.Do("POST", "/mcp", nil, strings.ReplaceAll(e2e.InitBody, e2e.Revision, revision))
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		h := map[string]string{"Mcp-Session-Id": got.Header.Get("Mcp-Session-Id")}
		require.Equal(t, http.StatusAccepted, s.Do("POST", "/mcp", h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Status)
		return h
	}
	ids := func(body string) (ids []string) {
		body = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(body), "event: message\ndata: "))
		var all []e2e.Message
		require.NoError(t, json.Unmarshal([]byte(body), &all), body)
		for _, m := range all {
			ids = append(ids, string(m.ID))
		}
		sort.Strings(ids)
		return ids
	}
	h := begin("2025-03-26")
	whole := "[\n" + batchedCall("1", "b_t") + ",\r\n" + batchedNote + "," + batchedPing(`"two"`) + ",7\n]\n"
	for accept, kind := range map[string]string{"application/json, text/event-stream": "application/json", "application/json": "application/json", "text/event-stream": "text/event-stream"} {
		got := s.Do("POST", "/mcp/", map[string]string{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": accept}, whole)
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		require.Equal(t, kind, got.Header.Get("Content-Type"))
		require.Equal(t, []string{`"two"`, "1", "null"}, ids(got.Body))
		require.Contains(t, got.Body, "b:t:")
	}
	require.Equal(t, 3, backend.Count("tools/call"))
	for body, status := range map[string]int{`[` + batchedNote + `]`: 202, `[]`: 400, `[` + batchedNote: 400} {
		require.Equal(t, status, s.Do("POST", "/mcp", h, body).Status, body)
	}

	for name, header := range map[string]map[string]string{
		"another revision": begin("2025-06-18"), "no session": {}, "stateless": {"MCP-Protocol-Version": "2026-07-28"},
	} {
		got := s.Do("POST", "/mcp", header, whole)
		require.Equal(t, http.StatusBadRequest, got.Status, name)
		require.Equal(t, []string{`"two"`, "1", "null"}, ids(got.Body), name)
		got = s.Do("POST", "/mcp", header, `[`+batchedPing("5")+`]`)
		require.Equal(t, "5", string(e2e.At([]byte(got.Body), "id")), name)
	}
	require.Equal(t, 3, backend.Count("tools/call"))
}
