package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each client has a root of its own, and each call makes the server ask for it:
// an answer that holds another client's root has gone astray.
func TestAnswersNeverReachAnotherClientsCallWhateverHappensToTheServer(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]struct{ script, conf obj }{
		"legacy, shared":       {obj{}, obj{}},
		"legacy, per session":  {obj{}, obj{"isolation": "session"}},
		"both eras, shared":    {obj{"era": "dual"}, obj{}},
		"both eras, apart":     {obj{"era": "dual"}, obj{"isolation": "session"}},
		"modern alone, shared": {obj{"era": "modern"}, obj{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := asking("roots/list", obj{})
			for k, v := range back.script {
				script[k] = v
			}
			b := w.backend("b", script, back.conf)
			s := w.serve()
			var all sync.WaitGroup
			done := make(chan struct{})
			own := make([]func() bool, 6)
			for n := range own {
				mine := fmt.Sprintf("file:///root-of-%d/", n)
				roots := obj{"roots": []obj{{"uri": mine}}}
				c := [](func() *client){
					func() *client { return w.pipe("stdio") },
					func() *client { return w.pipe("stdio").stateless() },
					s.rawClient,
				}[n%3]()
				c.caps = obj{"roots": obj{}}
				c.reply = func(message) (any, any) { return roots, nil }
				if !c.modern {
					c.init()
				}
				own[n] = func() bool { return c.getsRoot(mine, roots) }
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
					for _, p := range b.live()[:min(1, len(b.live()))] {
						_ = kill(p.pid) // it may have ended
					}
				case 1:
					w.run("restart", "b")
				case 2:
					w.edit(func() { b.conf["env"] = obj{"N": strconv.Itoa(n)} })
				}
				select {
				case <-done:
					busy = false
				case <-time.After(50 * time.Millisecond):
				}
			}
			for _, gets := range own {
				eventually(t, "the client's own root", gets)
			}
		})
	}
}

// getsRoot calls the tool that asks for roots, and comes back with them when
// that is demanded. It reports whether the server got the client's own root;
// another it must not get.
func (c *client) getsRoot(mine string, roots obj) bool {
	params := obj{"name": "b_ask"}
	m := c.request("tools/call", params)
	for str(m.Result, "resultType") == "input_required" {
		_, keys := demanded(c.t, m)
		answers := obj{}
		for _, key := range keys {
			answers[key] = roots
		}
		params["requestState"], params["inputResponses"] = at(m.Result, "requestState"), answers
		m = c.request("tools/call", params)
	}
	got := strings.Contains(m.raw, mine)
	require.Equal(c.t, got, strings.Contains(m.raw, "root-of-"), "%s", m.raw)
	return got
}
