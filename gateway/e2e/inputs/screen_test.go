//go:build e2e

package inputs

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// With an own config the UI opens on Home and zooms the focused part. It marks an
// invalid config until it is valid again.
func TestAScreenOverAnOwnConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	p := w.Pane(80, 24)
	editor := filepath.Join(t.TempDir(), "nano") // whose line is recognized by its name
	ran := editor + ".ran"
	e2e.WriteProgram(t, editor, "#!/bin/sh\necho \"$@\" > "+ran+".new && mv "+ran+".new "+ran+"\n")
	p.Line("export VISUAL=%s", editor)
	p.Goblin("")
	p.Shows("[9 Home]", "Nothing needs you", "shop", "ready")

	p.Types("2")
	p.Shows("[2 Tools", "shop_stat")
	p.Types("/shop_stat")
	p.Keys("Enter", "Enter")
	p.Shows("Definition", "F show list") // the detail has the whole body
	p.Hides("Tools 1/")
	p.Keys("Escape")
	p.Shows("Tools 1/")

	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	bad := strings.TrimRight(string(good), "\n") + "\nsurprise: 1\nanother: 2\n"
	line := strings.Count(string(bad), "\n")
	require.NoError(t, os.WriteFile(w.Config, []byte(bad), 0o600))
	p.Shows("config invalid (!)")
	p.Types("!")
	p.Shows("Config not reloaded: 2 errors", "surprise", "another")
	p.Types("j")
	p.Keys("Enter")
	e2e.Eventually(t, "the editor runs", func() bool { _, err := os.Stat(ran); return err == nil })
	args, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "+"+strconv.Itoa(line)+" "+w.Config+"\n", string(args))
	p.Shows("Config not reloaded")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	p.Until("the tools without the list", func(screen string) bool { // the editor hides it, too
		return strings.Contains(screen, "Tools 1/") && !strings.Contains(screen, "config invalid") && !strings.Contains(screen, "Config not reloaded")
	})
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

// A client that leaves before the answer is not counted as a failure, either in Traffic
// or in usage.
func TestAScreenShowsAClientThatLeft(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("pay")}, "on": e2e.Obj{
		"tools/call pay": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "paid"})),
	}})
	s := w.Served()
	begin := func(n int) (session string, hangUp func()) {
		session = s.Do("POST", "/mcp", nil, e2e.InitBody).Header.Get("Mcp-Session-Id")
		require.NotEmpty(t, session)
		ctx, cancel := context.WithCancel(t.Context())
		call, err := http.NewRequestWithContext(ctx, "POST", s.Base+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shop_pay"}}`))
		require.NoError(t, err)
		call.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {session}}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if res, err := s.Http.Do(call); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}()
		b.WaitReceived("tools/call", n)
		return session, func() { cancel(); <-gone }
	}
	_, hangUp := begin(1)
	hangUp()
	session, hangUp := begin(2)
	s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": session}, "")
	defer hangUp()

	p := w.Pane(120, 30)
	p.Goblin("")
	p.Shows("[9 Home]")
	p.Types("5]")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	p.Until("two calls whose clients left", func(screen string) bool { return strings.Count(screen, "client left") == 2 })
	require.NotContains(t, p.Screen(), "!", "nothing failed")
	var usage struct {
		All struct{ Calls, Errors int }
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("usage", "--json")), &usage))
	require.Equal(t, 2, usage.All.Calls)
	require.Zero(t, usage.All.Errors)
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
