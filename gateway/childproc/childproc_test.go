//go:build linux || darwin

package childproc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/childproc"
)

// TestMain also runs the processes of the tests: an owner of children, a child, a
// grandchild.
func TestMain(m *testing.M) {
	switch role := os.Getenv("ORPHANS_ROLE"); role {
	case "":
		goleak.VerifyTestMain(m)
	case "owner":
		owner(os.Getenv("ORPHANS_DIR"))
	case "reaper": // an idle process
	default:
		child(role)
	}
}

// owner records a child, prints its pid and waits to be killed.
func owner(dir string) {
	r := childproc.New(dir, slog.Default())
	cmd := role("child " + os.Getenv("ORPHANS_CHILD"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	r.Add(cmd.Process.Pid, "files", "/bin/files")
	grandchild, _ := bufio.NewReader(out).ReadString('\n')
	if os.Getenv("ORPHANS_HANDS_OVER") != "" {
		if err := r.HandOver(role("reaper")); err != nil {
			panic(err)
		}
	}
	fmt.Printf("%d %s", cmd.Process.Pid, grandchild)
	time.Sleep(2 * time.Minute) // a process without timers exits with a deadlock
}

// child prints the pid of its own child. It exits or does not exit by SIGTERM.
func child(role string) {
	if strings.Contains(role, "stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if strings.HasPrefix(role, "child") {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ORPHANS_ROLE=grand"+role)
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Println(cmd.Process.Pid)
	}
	time.Sleep(2 * time.Minute)
}

func role(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ORPHANS_ROLE="+name)
	return cmd
}

// family is a killed owner with its processes and files.
type family struct {
	t                 *testing.T
	dir               string
	child, grandchild int
}

// left starts an owner with a child of the kind and kills it.
func left(t *testing.T, kind string) *family {
	t.Helper()
	f := begin(t, t.TempDir(), kind)
	f.kill()
	return f.family
}

type owned struct {
	*family
	cmd *exec.Cmd
}

func (o *owned) kill() {
	require.NoError(o.t, o.cmd.Process.Kill())
	_ = o.cmd.Wait()
}

func begin(t *testing.T, dir, kind string) *owned {
	t.Helper()
	cmd := role("owner")
	cmd.Env = append(cmd.Env, "ORPHANS_DIR="+dir, "ORPHANS_CHILD="+kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	f := &family{t: t, dir: dir}
	_, err = fmt.Fscan(out, &f.child, &f.grandchild)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(-f.child, syscall.SIGKILL) })
	return &owned{f, cmd}
}

func (f *family) alive() []int {
	var pids []int
	both := fmt.Sprintf("%d,%d", f.child, f.grandchild)
	states, _ := exec.Command("ps", "-o", "pid=,stat=", "-p", both).Output() // fails if there is no such process
	for line := range strings.Lines(string(states)) {
		var pid int
		var state string
		_, err := fmt.Sscan(line, &pid, &state)
		require.NoError(f.t, err)
		if state[0] != 'Z' {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 2 && pids[0] != f.child {
		slices.Reverse(pids)
	}
	return pids
}

// files returns the records in the folder.
func (f *family) files() []string {
	found, err := filepath.Glob(filepath.Join(f.dir, "children-*"))
	require.NoError(f.t, err)
	return found
}

// rewrite changes each recorded child.
func (f *family) rewrite(change func(map[string]any)) {
	files := f.files()
	require.Len(f.t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(f.t, err)
	var c map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	require.NoError(f.t, d.Decode(&c))
	change(c)
	text, err = json.Marshal(c)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(files[0], text, 0o600))
}

// later adds to a number of the record.
func later(key string, n int64) func(map[string]any) {
	return func(c map[string]any) {
		old, err := c[key].(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		c[key] = old + n
	}
}

// sweep does what the next start does, and returns its log.
func sweep(dir string) string {
	var log strings.Builder
	r := childproc.New(dir, slog.New(slog.NewTextHandler(&log, nil)))
	r.Sweep(context.Background())
	r.Close()
	return log.String()
}

func TestWhatAKilledProcessLeftIsEnded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"obedient", "stubborn"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := left(t, kind)
			require.Len(t, f.alive(), 2)
			log := sweep(f.dir)
			require.Empty(t, f.alive())
			require.Empty(t, f.files())
			require.Contains(t, log, fmt.Sprintf("server=files pid=%d command=/bin/files", f.child))
		})
	}
}

func TestAGroupThatLostItsLeaderIsEnded(t *testing.T) {
	t.Parallel()
	f := left(t, "stubborn")
	require.NoError(t, syscall.Kill(f.child, syscall.SIGKILL))
	require.Eventually(t, func() bool { return len(f.alive()) == 1 }, 30*time.Second, 20*time.Millisecond)
	sweep(f.dir)
	require.Empty(t, f.alive())
}

func TestANumberThatWasGivenToAnotherProcessIsNotTouched(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leader bool // still running
		change func(map[string]any)
	}{
		"another start":                     {true, later("start", 1)},
		"another boot":                      {true, func(c map[string]any) { c["era"] = "another" }},
		"no leader, but another session":    {false, later("session", 1)},
		"no leader, but older than its own": {false, later("start", 1e9)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := left(t, "obedient")
			want := []int{f.child, f.grandchild}
			if !tt.leader {
				require.NoError(t, syscall.Kill(f.child, syscall.SIGKILL))
				require.Eventually(t, func() bool { return len(f.alive()) == 1 }, 30*time.Second, 20*time.Millisecond)
				want = want[1:]
			}
			f.rewrite(tt.change)
			require.Empty(t, sweep(f.dir))
			require.Equal(t, want, f.alive())
			require.Empty(t, f.files(), "a retry would not help")
		})
	}
}

func TestChildrenOfALivingProcessAreNotTouched(t *testing.T) {
	t.Parallel()
	o := begin(t, t.TempDir(), "obedient")
	require.Empty(t, sweep(o.dir))
	require.Len(t, o.alive(), 2)
	require.Len(t, o.files(), 1)
	o.kill()
	sweep(o.dir)
	require.Empty(t, o.alive())
}

func TestABrokenRecordCostsNothing(t *testing.T) {
	t.Parallel()
	f := left(t, "obedient")
	whole, err := os.ReadFile(f.files()[0])
	require.NoError(t, err)
	for i, text := range []string{
		"", "\x00\xff", strings.Repeat("x", 5000), "{}\n", `{"pid":-1,"start":1,"session":1,"era":"x"}`,
		`{"pid":1,"start":1,"session":1,"era":"x"}` + "\n", "[[[[", strings.Repeat("[", 400), string(whole[:60]),
		"{\"pid\":\n" + string(whole) + "rubbish",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("children-%d-x", i)), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "children-folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(f.dir, "children-pipe"), 0o600))
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(f.dir, "children-link")))
	sweep(f.dir)
	require.Empty(t, f.alive(), "complete lines count")
	require.FileExists(t, secret)
	require.Len(t, f.files(), 3, "unknown lines are kept")
}

func TestRecordsArePrivateAndGoWithTheirChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &family{t: t, dir: dir}
	r := childproc.New(dir, slog.Default())
	require.Empty(t, f.files(), "a process without children has no file")
	var forget []func()
	for _, server := range []string{"one", "two", "three"} {
		forget = append(forget, r.Add(os.Getpid(), server, strings.Repeat("/long", 500)))
	}
	servers := func() string {
		text, err := os.ReadFile(f.files()[0])
		require.NoError(t, err)
		return strings.Join(regexp.MustCompile(`"server":"\w+"`).FindAllString(string(text), -1), " ")
	}
	require.Equal(t, `"server":"one" "server":"two" "server":"three"`, servers())
	info, err := os.Stat(f.files()[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	forget[1]()
	require.Equal(t, `"server":"one" "server":"three"`, servers())
	forget = append(forget, r.Add(os.Getpid(), "four", ""))
	require.Equal(t, `"server":"one" "server":"four" "server":"three"`, servers(), "slots are reused")
	for _, i := range []int{0, 2, 3} {
		forget[i]()
	}
	require.Empty(t, servers())
	r.Close()
	require.Empty(t, f.files())
}

func TestAFolderThatCannotBeWrittenIsToldOfOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := childproc.New(filepath.Join(t.TempDir(), "none"), slog.New(slog.NewTextHandler(&log, nil)))
	r.Sweep(context.Background())
	r.Add(os.Getpid(), "a", "")()
	r.Add(os.Getpid(), "b", "")()
	require.ErrorIs(t, r.HandOver(role("child")), childproc.ErrNoRecord, "unrecorded processes could not be stopped")
	r.Close()
	require.Equal(t, 1, strings.Count(log.String(), "are not recorded"), log.String())
}

func TestTheEndOfTheProcessDoesNotWaitForTheStubborn(t *testing.T) {
	t.Parallel()
	f := left(t, "stubborn")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := childproc.New(f.dir, slog.New(slog.DiscardHandler))
	r.Sweep(ctx)
	require.Empty(t, f.alive())
}

func TestChildrenThatWereHandedOverAreNotReportedAsThoseOfAKilledProcess(t *testing.T) {
	for handsOver, want := range map[string]string{
		"":    `level=WARN msg="stopping server left by a killed Goblin"`,
		"yes": `level=INFO msg="stopping server left by a finished command"`,
	} {
		t.Run("hands over: "+handsOver, func(t *testing.T) {
			t.Setenv("ORPHANS_HANDS_OVER", handsOver)
			f := left(t, "docile")
			var log strings.Builder
			childproc.New(f.dir, slog.New(slog.NewTextHandler(&log, nil))).Sweep(context.Background())
			require.Contains(t, log.String(), want)
			require.Equal(t, 1, strings.Count(log.String(), "level="), log.String())
			require.Empty(t, f.alive())
			files, err := os.ReadDir(f.dir)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
}
