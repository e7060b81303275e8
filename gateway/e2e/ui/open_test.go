//go:build e2e

package ui

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestARecordingIsShownWithoutServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	night, err := filepath.Abs("../../archive/testdata/night.jsonl")
	require.NoError(t, err)
	p := w.Pane(140, 40)
	p.Goblin("open " + night + " ms:x")
	p.Shows("ms must be a duration", "ended with 2")
	p.Goblin("open " + night)
	p.Shows("recording night ", "web_fetch", "running", "2 unreadable parts")
	p.Types("c")
	p.Shows("this is a recording; no requests are sent")
	p.Types("2")
	p.Shows("files_add", "stale 6 s")
	p.Types("5]]") // from the traffic to the log of Goblin
	p.Shows("the queue was full", "the last line is cut")
	p.Types("q")
	p.Restored(0)
	require.Empty(t, w.Sockets(), "no daemon was started")
}

func TestALargeRecordingShowsItsProgress(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	slow := filepath.Join(w.Dir, "slow.jsonl")
	var text strings.Builder
	text.WriteString(`{"type":"recording","version":1,"bodies":true,"settings":{"servers":{}}}` + "\n")
	line := `{"type":"request","time":"2026-03-01T02:00:00Z","n":1,"method":"x","outcome":"success","params":{"a":"` + strings.Repeat("x", 60_000) + `"}}` + "\n"
	require.NoError(t, os.WriteFile(slow, []byte(text.String()+strings.Repeat(line, 4000)), 0o600))
	p := w.Pane(100, 20)
	p.Goblin("open " + slow)
	p.Until("the progress or the recording", func(screen string) bool {
		return strings.Contains(screen, "reading ") || strings.Contains(screen, "recording slow.jsonl")
	})
	p.Signal(syscall.SIGINT)
	p.Until("its end", func(screen string) bool { return strings.Contains(screen, "\nended with ") })
}

func TestAFileThatIsNoRecordingIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	path := filepath.Join(w.Dir, "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte("hello\n"), 0o600))
	later := filepath.Join(w.Dir, "later.jsonl")
	require.NoError(t, os.WriteFile(later, []byte(`{"type":"recording","version":99,"goblin":"9.0.0"}`+"\n"), 0o600))
	p := w.Pane(120, 20)
	p.Goblin("open " + path)
	p.Shows("not a recording of Goblin", "ended with 1")
	p.Goblin("open " + later)
	p.Shows("recorded by Goblin 9.0.0")
	out := w.Run("open", path)
	require.Equal(t, 1, out.Code)
	require.Contains(t, out.Stderr, "must be a terminal")
}

func TestARecordingOfAKilledDaemonIsOpened(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	folder := filepath.Join(w.Dir, "recordings")
	s := w.Serve("--record", folder)
	w.Succeeds("call", "shop_stat", "--args", `{"sku":"a1"}`)
	require.Contains(t, w.Succeeds("read", e2e.AppLog), "line one")
	b.Add("tools", e2e.Tool("refund"))
	b.ListChanged("tools")
	recorded := func(words ...string) func() bool {
		return func() bool {
			files, _ := filepath.Glob(filepath.Join(folder, "*.jsonl"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				for _, word := range words {
					if !strings.Contains(string(text), word) {
						return false
					}
				}
			}
			return len(files) > 0
		}
	}
	e2e.Eventually(t, "the recording", recorded("shop_stat", "line one", "refund"))
	s.Signal(syscall.SIGKILL)
	s.Ends(e2e.Patience)
	b.WaitGone()

	p := w.Pane(140, 40)
	p.Goblin("open " + folder)
	p.Shows("recording recordings", "shop_stat", "tools/call")
	p.Types("2")
	p.Shows("shop_refund", "shop_stat")
	p.Types("4")
	p.Types("/log")
	p.Keys("Enter", "Enter")
	p.Shows("line one")
	p.Types("q")
	p.Restored(0)
	require.Contains(t, w.Succeeds("changes", "--from", folder), "added tool")
}
