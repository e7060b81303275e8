package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

func (w *World) Sockets() []string {
	var found []string
	_ = filepath.WalkDir(filepath.Join(w.Dir, "run"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSocket != 0 {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// DaemonPID returns the process id of the detached daemon. Daemons that were started at
// the same time may exist for a moment.
func (w *World) DaemonPID() int {
	w.T.Helper()
	var daemons []int
	Eventually(w.T, "one daemon", func() bool {
		daemons = nil
		for _, p := range w.Processes("") {
			var n int
			_, _ = fmt.Sscan(p, &n)
			if n > 1 && strings.Contains(p, Goblin) && !w.isClient(n) {
				daemons = append(daemons, n)
			}
		}
		return len(daemons) == 1
	})
	return daemons[0]
}

func (w *World) isClient(pid int) bool {
	for _, p := range w.Programs {
		if p.Cmd.Process.Pid == pid {
			return true
		}
	}
	return false
}

// CallUntilItWorks waits until the next daemon serves calls. A call is lost if it is sent
// before the bridge notices the end of the last daemon.
func (c *Client) CallUntilItWorks(tool string) {
	c.T.Helper()
	Eventually(c.T, "the next daemon", func() bool {
		return c.Works(Obj{"name": tool, "arguments": Obj{}})
	})
}

func (w *World) DaemonLog() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), ".log") {
			if text, err := os.ReadFile(path); err == nil {
				b.Write(text)
			}
		}
		return nil
	})
	return b.String()
}

// Edit changes the config as editors do, by replacing the file.
func (w *World) Edit(change func()) {
	w.T.Helper()
	path := w.Config
	w.Write()
	w.Written = false
	change()
	w.Config = filepath.Join(w.Dir, "edited")
	w.Write()
	require.NoError(w.T, os.Rename(w.Config, path))
	w.Config = path
}

func (w *World) Drop(b *Backend) {
	for i := range w.Backends {
		if w.Backends[i] == b {
			w.Backends = append(w.Backends[:i:i], w.Backends[i+1:]...)
			w.T.Cleanup(b.close)
			return
		}
	}
}

type daemonStatus struct {
	PID      int
	Log      string
	Notice   string
	Sessions []struct{ Transport, Client string }
	// Recording is zero if nothing is recorded.
	Recording struct {
		Folder, Error string
		Bytes         int64
	}
}

func (w *World) Status() (s daemonStatus) {
	w.T.Helper()
	require.NoError(w.T, json.Unmarshal([]byte(w.Succeeds("status", "--json")), &s))
	return s
}

func (s daemonStatus) Count(transport string) (n int) {
	for _, c := range s.Sessions {
		if c.Transport == transport {
			n++
		}
	}
	return n
}

func (w *World) WaitUIs(n int) {
	w.T.Helper()
	Eventually(w.T, fmt.Sprintf("%d UIs", n), func() bool { return w.Status().Count("screen") == n })
}
