//go:build e2e

package commands

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func watching(w *e2e.World, args ...string) (*e2e.Program, *e2e.Buffer) {
	out := new(e2e.Buffer)
	return w.Start(func(cmd *exec.Cmd) { cmd.Stdout = out }, append([]string{"watch"}, args...)...), out
}

func setText(b *e2e.Backend, uri, text string) {
	contents := []e2e.Obj{{"uri": uri, "mimeType": "text/plain", "text": text}}
	b.Do(e2e.Obj{"do": "on", "key": "resources/read " + uri, "actions": e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"contents": contents}}))})
	b.Updated(uri)
}

func TestWatchPrintsContentsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	w.Bridged().Names("tools")
	p, out := watching(w, e2e.In("shop", e2e.AppLog), "--json")
	e2e.Eventually(t, "the first content", func() bool { return strings.Count(out.String(), "\n") == 1 })
	setText(b, e2e.AppLog, "line three")
	e2e.Eventually(t, "the second content", func() bool { return strings.Count(out.String(), "\n") == 2 })
	var line struct {
		URI      string
		Contents []struct{ Text string }
	}
	require.NoError(t, json.Unmarshal([]byte(strings.Split(out.String(), "\n")[1]), &line))
	require.Equal(t, e2e.In("shop", e2e.AppLog)+" line three", line.URI+" "+line.Contents[0].Text)
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	b.WaitReceived("resources/unsubscribe", 1)
}

func TestWatchContinuesAfterRestarts(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	w.Bridged().Names("tools")
	_, out := watching(w, e2e.AppLog, "--diff")
	b.WaitReceived("resources/read", 1)
	n := 1
	e2e.Eventually(t, "a difference", func() bool { // the first read may already have the new text
		n++
		setText(b, e2e.AppLog, fmt.Sprintf("line one\nline %d", n))
		return strings.Contains(out.String(), "-line ") && strings.Contains(out.String(), "+line ")
	})
	w.Succeeds("restart", "shop") // its content is the first one again
	b.WaitReceived("resources/subscribe", 2)
	b.Updated(e2e.AppLog)
	e2e.Eventually(t, "the difference back", func() bool { return strings.Contains(out.String(), "+line two") })
}

func TestWatchRunsCommands(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	text := w.Succeeds("watch", e2e.AppLog, "--count", "1", "--exec", `echo "$GOBLIN_URI: $(tail -1)"`)
	require.Equal(t, e2e.AppLog+": line two\n", text)
	require.Equal(t, "\x00\x01\x02\x03", w.Succeeds("watch", e2e.AppJSON, "--count", "1"), "a blob on a pipe is its bytes")
	b.WaitGone()
}

func TestWatchExplainsFailures(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("quiet", e2e.Merge(e2e.Shop(), []e2e.Obj{{"capabilities": e2e.Obj{"tools": e2e.Obj{}, "resources": e2e.Obj{}}}}))
	out := w.Run("watch", e2e.AppLog)
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "does not support subscriptions; --every 5s reads at intervals instead")
	require.Equal(t, "line one\nline two", strings.TrimSpace(w.Succeeds("watch", e2e.AppLog, "--every", "100ms", "--count", "1")))
	require.Equal(t, e2e.ExitNotFound, w.Run("watch", "none://x").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("watch").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("watch", e2e.AppLog, "--exec", " ").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("watch", e2e.AppLog, "--every", "1ms").Code)
}

func TestChangesShowWhatServersChanged(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	c := w.Bridged()
	c.Names("tools")
	require.Contains(t, w.Succeeds("changes"), "No changes since")
	b.Add("tools", e2e.Tool("refund"))
	b.ListChanged("tools")
	e2e.Eventually(t, "a change", func() bool { return strings.Contains(w.Succeeds("changes", "shop"), "added tool") })
	require.Contains(t, w.Succeeds("changes"), "refund")

	// The next daemon compares with the cached lists. The new process lacks the tool.
	c.Close()
	w.Succeeds("stop")
	w.Bridged().Names("tools")
	e2e.Eventually(t, "a change between two runs", func() bool { return strings.Contains(w.Succeeds("changes"), "removed tool") })
	var answer struct {
		Changes []struct{ ServerID, Name, Op string }
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("changes", "--json")), &answer))
	require.Len(t, answer.Changes, 1)
	require.Equal(t, "shop refund removed", answer.Changes[0].ServerID+" "+answer.Changes[0].Name+" "+answer.Changes[0].Op)
	out := w.Run("changes", "nobody")
	require.Equal(t, e2e.ExitNotFound, out.Code)
}
