//go:build unix

package devloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
	"goblin/gateway/stack"
	"goblin/registry"
)

func TestMain(m *testing.M) {
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// patience limits every wait. A correct program needs a small part of it.
const patience = 60 * time.Second

// workshop is a folder with the source of a server, and a gateway that builds it.
type workshop struct {
	t     *testing.T
	dir   string
	stack *stack.Stack
}

// open starts a gateway with the server "shop". Its source is tools.js, a script of the
// test server; keys are further members of its config.
func open(t *testing.T, tools, args, keys string) *workshop {
	t.Helper()
	e2e.Use()
	w := &workshop{t: t, dir: t.TempDir()}
	w.write("tools.js", tools)
	text := fmt.Sprintf("servers:\n  shop: {command: %q, args: [%s], %s}\n", e2e.TestServer, args, keys)
	w.write("goblin.yaml", text)
	cfg, err := config.Load(filepath.Join(w.dir, "goblin.yaml"))
	require.NoError(t, err)
	w.stack, err = stack.New(stack.Options{Config: cfg, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.stack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

func (w *workshop) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.WriteFile(path+".tmp", []byte(text), 0o600))
	require.NoError(w.t, os.Rename(path+".tmp", path))
}

// until waits for a state of the server.
func (w *workshop) until(what string, ok func(*registry.ServerState) bool) registry.ServerState {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	changes := w.stack.Registry().Watch(ctx, registry.Servers)
	for {
		if s, known := w.stack.Registry().State("shop"); known && s.Build != nil && ok(&s) {
			return s
		}
		if _, open := <-changes; !open {
			s, _ := w.stack.Registry().State("shop")
			w.t.Fatalf("no %s: %s %q, build %+v\n%s", what, s.State, s.LastError, s.Build, strings.Join(w.log(), "\n"))
		}
	}
}

// reaches waits until a build after number before is in a phase.
func (w *workshop) reaches(before int, phase registry.BuildPhase) registry.ServerState {
	w.t.Helper()
	return w.until(string(phase), func(s *registry.ServerState) bool { return s.Build.Number > before && s.Build.Phase == phase })
}

// notices waits for the registry's notice, which follows the state of a build.
func (w *workshop) notices(text string) {
	w.t.Helper()
	e2e.Eventually(w.t, "notice "+strconv.Quote(text), func() bool { return w.stack.Registry().Notice() == text })
}

// log returns the lines about builds.
func (w *workshop) log() (lines []string) {
	for _, r := range w.stack.Registry().Logs().Window(1, -1) {
		if r.Source == registry.SourceBuild {
			lines = append(lines, r.Text)
		}
	}
	return lines
}

func (w *workshop) count(prefix string) (n int) {
	for _, line := range w.log() {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

const (
	oneTool  = `{"name": "shop", "tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"y": {"type": "string"}}}}]}`
	twoTools = `{"name": "shop", "tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}}, {"name": "b", "inputSchema": {"type": "object"}}]}`
	copies   = `build: "grep -q broken tools.js && echo \"\e[31mline 1: broken\" >&2 && exit 3; cp tools.js built.json"`
)

func lines(changes []registry.ListChange) (all []string) {
	for i := range changes {
		all = append(all, changes[i].Line())
	}
	return all
}

func TestAChangeBuildsRestartsAndCompares(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "built.json", copies)
	first := w.reaches(0, registry.BuildRestarted)
	require.True(t, first.Build.First)
	require.Equal(t, "first lists", first.Build.Summary())
	require.Equal(t, 1, first.Counts[registry.Tool])

	client, err := w.stack.OpenClient(t.Context(), "test", nil)
	require.NoError(t, err)
	defer client.Close()
	w.write("tools.js", twoTools)
	second := w.reaches(first.Build.Number, registry.BuildRestarted)
	require.Equal(t, "tools.js", second.Build.Files)
	require.Equal(t, "+1 ~1", second.Build.Summary())
	require.Equal(t, []string{`~ tool a: argument "y" is now required`, "+ tool b"}, lines(second.Build.Changes))
	require.NotEqual(t, first.PID, second.PID)
	require.ErrorIs(t, syscall.Kill(first.PID, 0), syscall.ESRCH, "the old process was stopped")

	// The client's connection stays.
	answer, err := client.Request(t.Context(), "tools/call", json.RawMessage(`{"name": "shop_b"}`), nil)
	require.NoError(t, err)
	require.Contains(t, string(answer), "shop:b")

	w.write("tools.js", oneTool)
	third := w.reaches(second.Build.Number, registry.BuildRestarted)
	require.Equal(t, []string{`~ tool a: argument "y" is no longer required`, "- tool b"}, lines(third.Build.Changes))
}

func TestAFailedBuildKeepsTheProcess(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "built.json", copies)
	first := w.reaches(0, registry.BuildRestarted)
	w.write("tools.js", "broken")
	failed := w.reaches(first.Build.Number, registry.BuildFailed)
	require.Equal(t, "exit status 3", failed.Build.Error)
	require.Equal(t, "line 1: broken\n", failed.Build.Output, "without control sequences")
	require.Equal(t, first.PID, failed.PID)
	require.Equal(t, registry.StateReady, failed.State)
	w.notices("build of shop failed: exit status 3")
	require.Contains(t, w.log(), "  line 1: broken")

	w.write("tools.js", twoTools)
	fixed := w.reaches(failed.Build.Number, registry.BuildRestarted)
	require.Equal(t, "+1 ~1", fixed.Build.Summary(), "compared with the last build that worked")
	w.notices("")
}

func TestAFailedFirstBuildStartsAnOlderOne(t *testing.T) {
	t.Parallel()
	w := open(t, "broken", "older.json", `build: "echo '`+`{}' > older.json; exit 1"`)
	s := w.until("start", func(s *registry.ServerState) bool {
		return s.Build.Phase == registry.BuildFailed && s.State == registry.StateReady
	})
	require.Equal(t, 1, s.Build.Number)
	e2e.Eventually(t, "the start in the log", func() bool { return w.count("started: 0 tools") == 1 })
}

func TestAServerThatDoesNotStartIsReported(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "tools.js", "watch: auto") // restarted, not built
	first := w.until("start", func(s *registry.ServerState) bool { return s.Listed && s.Build.Phase == registry.BuildWatching })
	require.Equal(t, 1, first.Build.Watched)
	e2e.Eventually(t, "the start in the log", func() bool { return w.count("started: 1 tool") == 1 })
	w.write("tools.js", "{")
	failed := w.reaches(0, registry.BuildNotStarted)
	require.NotEmpty(t, failed.Build.Error)
	w.notices("shop did not start after its build: " + failed.Build.Error)
	w.write("tools.js", twoTools)
	fixed := w.reaches(failed.Build.Number, registry.BuildRestarted)
	require.Equal(t, "+1 ~1", fixed.Build.Summary())
	require.Contains(t, w.log(), "restarting: tools.js changed")
}

func TestAChangeDuringABuildStopsIt(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "built.json", `build: "! [ -e hold ]; held=$?; echo $$ >> pids; if [ $held = 1 ]; then sleep 1000; fi; cp tools.js built.json"`)
	first := w.reaches(0, registry.BuildRestarted)
	w.write("hold", "")
	w.write("tools.js", twoTools+" ")
	w.reaches(first.Build.Number, registry.BuildRunning)
	group := w.lastGroup(2)
	require.NoError(t, os.Remove(filepath.Join(w.dir, "hold")))
	burst := filepath.Join(t.TempDir(), "more") // appears at once, however slow the machine is
	require.NoError(t, os.Mkdir(burst, 0o700))
	for i := range 51 {
		require.NoError(t, os.WriteFile(filepath.Join(burst, fmt.Sprintf("%d.js", i)), []byte("x"), 0o600))
	}
	require.NoError(t, os.Rename(burst, filepath.Join(w.dir, "more")))
	done := w.reaches(first.Build.Number, registry.BuildRestarted)
	require.Equal(t, "+1 ~1", done.Build.Summary())
	require.Equal(t, 1, w.count("build stopped: more/0.js and 50 other files changed"), w.log())
	require.Equal(t, 3, w.count("building: "), w.log())
	isGone(t, group)
}

func TestStoppingStopsTheBuild(t *testing.T) {
	t.Parallel()
	var group int
	t.Run("run", func(t *testing.T) {
		w := open(t, oneTool, "built.json", `build: "echo $$ >> pids; trap '' TERM; sleep 1000; sleep 1000"`)
		w.reaches(0, registry.BuildRunning)
		group = w.lastGroup(1)
	})
	isGone(t, group)
}

// isGone waits until the system has removed the last process of a group.
func isGone(t *testing.T, group int) {
	t.Helper()
	e2e.Eventually(t, "the build's processes to be stopped", func() bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) })
}

// lastGroup waits for a number of builds and returns the process group of the last one.
func (w *workshop) lastGroup(builds int) int {
	w.t.Helper()
	group := 0
	e2e.Eventually(w.t, "a build", func() bool {
		text, _ := os.ReadFile(filepath.Join(w.dir, "pids")) // may not exist yet
		pids := strings.Fields(string(text))
		if len(pids) < builds || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		var err error
		group, err = strconv.Atoi(pids[builds-1])
		require.NoError(w.t, err)
		return true
	})
	return group
}

func TestABuildThatWritesAWatchedFileEnds(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "built.json", `build: "cp tools.js built.json; echo $$ > gen.js"`)
	w.until("warning", func(s *registry.ServerState) bool { return strings.Contains(s.Build.Warning, "gen.js") })
	s := w.until("end", func(s *registry.ServerState) bool { return s.Build.Phase == registry.BuildRestarted })
	require.LessOrEqual(t, s.Build.Number, 7)
}

func TestABuildThatWritesTheSameAgainEnds(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "built.json", `build: "echo x >> builds; cp tools.js built.json; echo same > gen.js"`)
	first := w.reaches(0, registry.BuildRestarted)
	e2e.Eventually(t, "the file of the build to count", func() bool { return w.count("building: ") >= 2 })
	w.until("end", func(s *registry.ServerState) bool {
		return s.Build.Number > first.Build.Number && s.Build.Phase == registry.BuildRestarted
	})
	w.write("tools.js", twoTools)
	w.until("change", func(s *registry.ServerState) bool { return s.Build.Summary() == "+1 ~1" })
	require.LessOrEqual(t, w.count("building: "), 5, w.log()) // slow machines notice the files separately
}

func TestEditsOfTheConfigApply(t *testing.T) {
	t.Parallel()
	w := open(t, oneTool, "tools.js", "disabled: false")
	edit := func(keys string) {
		w.write("goblin.yaml", fmt.Sprintf("servers:\n  shop: {command: %q, args: [tools.js], %s}\n", e2e.TestServer, keys))
		w.stack.Reload()
	}
	edit(`watch: "*.txt"`)
	w.until("watch", func(s *registry.ServerState) bool {
		return s.State == registry.StateReady && s.Build.Phase == registry.BuildWatching && s.Build.Watched == 0
	})
	edit(`watch: "*.txt", build: echo built`)
	built := w.until("build", func(s *registry.ServerState) bool { return s.Build.Output == "built\n" })
	w.write("a.txt", "")
	w.reaches(built.Build.Number, registry.BuildRestarted)
	edit("disabled: false")
	changes := w.stack.Registry().Watch(t.Context(), registry.Servers)
	for {
		if s, _ := w.stack.Registry().State("shop"); s.Build == nil {
			break
		}
		<-changes
	}
}
