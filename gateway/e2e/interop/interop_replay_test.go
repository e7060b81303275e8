//go:build interop

package interop

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// surveys contains one client's view of each server.
type surveys map[string]document

func TestInteropReplayEqualsWhatTheServersGave(t *testing.T) {
	t.Parallel()
	n := newNPM(t)
	w := e2e.NewWorld(t)
	for server, command := range n.commands(filepath.Join(w.Dir, "memory.jsonl")) {
		b, _ := w.Fake(server, e2e.Obj{})
		b.Conf = command
	}
	var roots []any
	for _, r := range n.roots() {
		roots = append(roots, r)
	}
	w.Gateway["roots"] = roots
	w.Write()
	servers := []string{"everything", "filesystem", "memory"}
	sdk := func(base string) surveys {
		all := surveys{}
		for _, server := range servers {
			spec := n.plan(server).spec(toolName(server), func(p string) string { return server + "/" + p }, func(u string) string { return e2e.In(server, u) })
			spec["transport"] = e2e.Obj{"url": base + "/mcp"}
			all[server] = n.use(t, os.Environ(), spec)
		}
		return all
	}
	cli := func(base string) surveys {
		all := surveys{}
		i := inspector{t: t, n: n, target: []string{base + "/mcp", "--transport", "http"}}
		for _, server := range servers {
			all[server] = i.survey(server, toolName(server), func(u string) string { return e2e.In(server, u) })
		}
		return all
	}
	folder := filepath.Join(w.Dir, "recordings")
	web := w.Serve("--record", folder)
	wantSDK, wantCLI := sdk(web.Base), cli(web.Base)
	web.Signal(syscall.SIGTERM)
	require.Zero(t, web.Ends(e2e.Patience))
	require.NoError(t, os.RemoveAll(n.files)) // the servers are not needed
	require.NoError(t, os.RemoveAll(filepath.Join(w.Dir, "memory.jsonl")))

	replay := w.Serve("--replay", folder)
	gotSDK, gotCLI := sdk(replay.Base), cli(replay.Base)
	for _, server := range servers {
		requireIdentical(t, server+" TypeScript SDK", wantSDK[server], gotSDK[server])
		requireIdentical(t, server+" Inspector", wantCLI[server], gotCLI[server])
	}
	require.NotEmpty(t, gotSDK["everything"].Asked)
	require.NotEmpty(t, gotSDK["everything"].Updates)
	require.NotContains(t, replay.Stderr.String(), "REPLAY_MISS")
}

// requireIdentical compares documents byte for byte. It omits the progress that the SDK
// may lose, and Goblin's own resource with the times of connections.
func requireIdentical(t *testing.T, what string, want, got document) {
	t.Helper()
	want.Progress, got.Progress = firstThree(want.Progress), firstThree(got.Progress)
	for _, d := range []document{want, got} {
		delete(d.Reads, "goblin://servers")
	}
	wantText, gotText := string(e2e.Marshal(want)), string(e2e.Marshal(got))
	for i := range min(len(wantText), len(gotText)) {
		if wantText[i] != gotText[i] {
			at := max(0, i-200)
			require.Equal(t, e2e.Tail(wantText[:min(len(wantText), i+200)], i+200-at), e2e.Tail(gotText[:min(len(gotText), i+200)], i+200-at), what)
		}
	}
	require.Len(t, gotText, len(wantText), what)
}
