//go:build e2e

package transparency

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Each client has its own root, and each call makes the server request it. An answer with
// another client's root is misrouted.
func TestAnswersNeverReachAnotherClientsCallWhateverHappensToTheServer(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]struct{ script, conf e2e.Obj }{
		"legacy, shared":       {e2e.Obj{}, e2e.Obj{}},
		"legacy, per session":  {e2e.Obj{}, e2e.Obj{"isolation": "session"}},
		"both eras, shared":    {e2e.Obj{"era": "dual"}, e2e.Obj{"era": "both"}},
		"both eras, apart":     {e2e.Obj{"era": "dual"}, e2e.Obj{"isolation": "session", "era": "both"}},
		"modern alone, shared": {e2e.Obj{"era": "modern"}, e2e.Obj{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.AskingServer("roots/list", e2e.Obj{})
			for k, v := range back.script {
				script[k] = v
			}
			b := w.Backend("b", script, back.conf)
			var all sync.WaitGroup
			done := make(chan struct{})
			own := make([]func() bool, 6)
			for n := range own {
				mine := fmt.Sprintf("file:///root-of-%d/", n)
				roots := e2e.Obj{"roots": []e2e.Obj{{"uri": mine}}}
				c := [](func() *e2e.Client){
					w.Socket,
					func() *e2e.Client { return w.Socket().Stateless() },
					w.Served().RawClient,
				}[n%3]()
				c.Caps = e2e.Obj{"roots": e2e.Obj{}}
				c.Reply = func(e2e.Message) (any, any) { return roots, nil }
				if !c.Modern {
					c.Init()
				}
				own[n] = func() bool { return getsRoot(c, mine, roots) }
				all.Go(func() {
					for range 10 {
						own[n]()
					}
				})
			}
			go func() {
				all.Wait()
				close(done)
			}()
			for n, busy := 0, true; busy; n++ {
				switch n % 3 {
				case 0:
					for _, p := range b.Live()[:min(1, len(b.Live()))] {
						_ = e2e.Kill(p.Pid) // it may have exited
					}
				case 1:
					w.Run("restart", "b")
				case 2:
					w.Edit(func() { b.Conf["env"] = e2e.Obj{"N": strconv.Itoa(n)} })
				}
				select {
				case <-done:
					busy = false
				case <-time.After(50 * time.Millisecond):
				}
			}
			for _, gets := range own {
				e2e.Eventually(t, "the client's own root", gets)
			}
		})
	}
}

// getsRoot calls the tool that requests roots, and retries with them if required. It
// reports whether the server got the client's own root, and fails for another root.
func getsRoot(c *e2e.Client, mine string, roots e2e.Obj) bool {
	params := e2e.Obj{"name": "b_ask"}
	m := c.Request("tools/call", params)
	for e2e.Str(m.Result, "resultType") == "input_required" {
		_, keys := e2e.InputRequests(c.T, m)
		answers := e2e.Obj{}
		for _, key := range keys {
			answers[key] = roots
		}
		params["requestState"], params["inputResponses"] = e2e.At(m.Result, "requestState"), answers
		m = c.Request("tools/call", params)
	}
	got := strings.Contains(m.Raw, mine)
	require.Equal(c.T, got, strings.Contains(m.Raw, "root-of-"), "%s", m.Raw)
	return got
}

func TestC12_ManyCallsAtOnceAreEachAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	c.Names("tools")
	const n = 10_000
	var ids []string
	for i := range n {
		ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"i": i}}))
	}
	for i, id := range ids {
		require.Equal(t, fmt.Sprintf(`b:t:{"i":%d}`, i), e2e.Str(c.End(id).Result, "content", 0, "text"))
	}
}
