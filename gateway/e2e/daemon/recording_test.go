//go:build e2e && unix

package daemon

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
	"goblin/registry"
	"goblin/registry/recording"
)

// recorded returns the lines of a recording.
func recorded(t *testing.T, path string) (lines []*recording.Line) {
	t.Helper()
	r, err := recording.Open(path)
	require.NoError(t, err)
	defer r.Close()
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		require.NoError(t, err)
		lines = append(lines, l)
	}
}

// calls returns the params of the recorded tool calls.
func calls(t *testing.T, path string) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for _, l := range recorded(t, path) {
		if l.Type == recording.TypeRequest && l.Method == "tools/call" && l.Outcome == "success" && l.Params != nil {
			found[string(l.Params.JSON)] = true
		}
	}
	return found
}

// ends returns the files of a folder with a suffix.
func ends(folder, suffix string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, "*"+suffix)) // the pattern is valid
	return found
}

func TestAKilledRecordingHasAllButTheLastSecond(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.NewWorld(t)
		w.Backend("b", e2e.Filesystem())
		folder := filepath.Join(w.Dir, "rec")
		s := w.Serve("--record", folder)
		c := s.Client(false)
		type answer struct {
			params string
			at     time.Time
		}
		var all []answer
		for begin := time.Now(); time.Since(begin) < 2*limit; {
			params := fmt.Sprintf(`{"arguments":{"n":%d},"name":"b_stat"}`, len(all))
			c.Ok("tools/call", e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{"n": len(all)}})
			all = append(all, answer{params, time.Now()})
		}
		killed := time.Now()
		s.Signal(syscall.SIGKILL)
		s.Ends(e2e.Patience)
		found := calls(t, folder)
		for _, one := range all {
			if killed.Sub(one.at) > limit && !found[one.params] {
				return fmt.Sprintf("%s of %d calls is missing, answered %s before the end", one.params, len(all), killed.Sub(one.at))
			}
		}
		require.NotEmpty(t, found)

		// The next recording compresses it as it is.
		cut := ends(folder, ".jsonl")
		require.Len(t, cut, 1)
		next := w.Serve("--record", folder)
		e2e.Eventually(t, "the old file is compressed", func() bool { return len(ends(folder, ".jsonl.gz")) == 1 })
		require.NoFileExists(t, cut[0])
		require.Equal(t, found, calls(t, cut[0]+".gz"))
		next.Signal(syscall.SIGTERM)
		require.Zero(t, next.Ends(e2e.Patience))
		require.Empty(t, ends(folder, ".jsonl"), "an orderly stop finishes its file")
		last := recorded(t, ends(folder, ".jsonl.gz")[1])
		require.Equal(t, recording.TypeEnd, last[len(last)-1].Type)
		return ""
	})
}

func TestARecordingContainsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-value-1234567890"
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, "PRIVATE_TOKEN="+secret)
	w.Backend("b", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"API_TOKEN": "${PRIVATE_TOKEN}"}})
	folder := filepath.Join(w.Dir, "rec")
	s := w.Serve("--record", folder)
	c := s.Client(false)
	for _, padding := range []int{0, 20_000, 100_000} { // in lines, masked by the writer, in files
		text := c.CallText("b_stat", e2e.Obj{"token": secret, "padding": strings.Repeat("x", padding)})
		require.Contains(t, text, secret, "the client gets it")
	}
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))
	files, placeholders := 0, 0
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s is private", path)
		if d.IsDir() {
			return nil
		}
		files++
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		if _, err := f.Seek(0, io.SeekStart); err == nil {
			if z, err := gzip.NewReader(f); err == nil {
				text, err = io.ReadAll(z)
				require.NoError(t, err)
			}
		}
		require.NotContains(t, string(text), secret, path)
		placeholders += strings.Count(string(text), "[hidden:")
		return nil
	}))
	require.Greater(t, files, 4)
	require.GreaterOrEqual(t, placeholders, 6)
	lines := recorded(t, folder)
	require.NotContains(t, string(lines[0].Settings), "API_TOKEN")
}

func TestAFullDiskStopsTheRecordingOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	folder := filepath.Join(w.Dir, "rec")
	w.Record = e2e.Obj{"dir": folder}
	w.Write()
	const blocks = "200" // of 512 or 1024 bytes
	c := w.PipeTo("/bin/sh", "-c", `ulimit -f `+blocks+`; exec "$0" "$@"`, e2e.Goblin, "stdio", "--standalone")
	c.Init()
	e2e.Eventually(t, "the recording stops", func() bool {
		c.CallText("b_stat", e2e.Obj{"padding": strings.Repeat("x", 20_000)})
		return strings.Contains(c.Prog.Stderr.String(), "recording stopped")
	})
	for n := range 20 {
		c.CallText("b_stat", e2e.Obj{"after": n})
	}
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Equal(t, 1, strings.Count(c.Prog.Stderr.String(), "recording stopped"), "it is logged once")
	require.NotEmpty(t, calls(t, folder), "the part before remains readable")
	text, err := os.ReadFile(ends(folder, ".jsonl")[0])
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "}\n"), "no line is incomplete")
}

func TestAFolderHasOneRecordingProcess(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	folder := filepath.Join(w.Dir, "rec")
	s := w.Serve("--record", folder)
	other := e2e.NewWorld(t)
	out := other.Run("serve", "--listen", "127.0.0.1:0", "--record", folder)
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, fmt.Sprintf("another process (pid %d) records into it", s.Cmd.Process.Pid))

	shared := filepath.Join(w.Dir, "shared")
	require.NoError(t, os.Mkdir(shared, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(shared, "file"), nil, 0o600))
	out = other.Run("serve", "--listen", "127.0.0.1:0", "--record", shared)
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "other users can access it (mode 0755)")
	out = other.Run("serve", "--listen", "127.0.0.1:0", "--record", "") // such as an unset variable
	require.Equal(t, e2e.ExitUsage, out.Code)
	require.Contains(t, out.Stderr, "--record needs a folder")
}

func TestEditsOfTheConfigStartAndStopRecordings(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Served().Client(false)
	require.Empty(t, w.Status().Recording.Folder)
	w.Edit(func() { w.Record = e2e.Obj{"bodies": false} })
	e2e.Eventually(t, "the recording starts", func() bool { return w.Status().Recording.Folder != "" })
	folder := w.Status().Recording.Folder
	c.CallText("b_stat", e2e.Obj{"private": 1})
	w.Edit(func() { w.Gateway["max_name"] = 40 })
	w.Edit(func() { w.Record = nil })
	e2e.Eventually(t, "the recording stops", func() bool { return w.Status().Recording.Folder == "" })
	c.CallText("b_stat", e2e.Obj{"later": 1})
	lines := recorded(t, folder)
	require.Equal(t, recording.TypeEnd, lines[len(lines)-1].Type)
	n := 0
	for _, l := range lines {
		if l.Method == "tools/call" {
			require.Nil(t, l.Params)
			n++
		}
	}
	require.Equal(t, 1, n)

	require.NoError(t, os.Chmod(folder, 0o755))
	w.Edit(func() { w.Record = e2e.Obj{"days": 3} })
	e2e.Eventually(t, "users see why nothing is recorded", func() bool { return strings.Contains(w.Status().Notice, "chmod 700") })
	c.CallText("b_stat", e2e.Obj{"works": "without"})
}

func TestRecordingsOfAConfigAreReadAndDeleted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Record = e2e.Obj{}
	s := w.Serve()
	s.Client(false).CallText("b_stat", e2e.Obj{"n": 1})
	folder := w.Status().Recording.Folder
	require.Contains(t, w.Succeeds("status"), "records  "+folder)
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))

	require.Contains(t, w.Succeeds("traffic", "name:b_stat"), "b_stat")
	require.Contains(t, w.Succeeds("traffic", "--delete", "--older", "7d"), "are older than 7d")
	require.Equal(t, e2e.ExitUsage, w.Run("traffic", "--delete").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("traffic", "name:b_stat", "--delete", "--older", "7d").Code)
	other := w.Run("traffic", "--delete", "--older", "0s", "--from", w.Dir)
	require.Equal(t, e2e.ExitFailure, other.Code)
	require.Contains(t, other.Stderr, "contains no recordings of Goblin")
	require.Contains(t, w.Succeeds("traffic", "--delete", "--older", "0s"), "Deleted 1 recording (")
	require.Empty(t, ends(folder, ".jsonl.gz"))
}

func TestARequestOfAServerIsRecordedWithBothIDs(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	w.Record = e2e.Obj{"dir": filepath.Join(w.Dir, "records")}
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{"form": e2e.Obj{}}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
	c.Init()
	c.CallText("b_ask", e2e.Obj{})
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))

	var call, asked *recording.Line
	for _, l := range recorded(t, filepath.Join(w.Dir, "records")) {
		switch {
		case l.Method == "tools/call" && l.Type == recording.TypeRequest:
			call = l
		case l.Method == "elicitation/create":
			asked = l
		}
	}
	require.NotNil(t, call)
	require.NotNil(t, asked)
	require.NotZero(t, asked.Number)
	require.NotEqual(t, call.Number, asked.Number)
	require.Equal(t, call.Number, asked.Parent)
	require.NotEmpty(t, registry.WireID([]byte(asked.Wire), registry.ClientID))
	require.NotEmpty(t, registry.WireID([]byte(asked.Wire), registry.ServerID))
}
