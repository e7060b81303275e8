package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Patience limits every wait. A correct program needs a small part of it.
const Patience = 60 * time.Second

const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	ExitConfig   = 3
	ExitConnect  = 4
	ExitTimeout  = 6
	ExitNotFound = 7
)

// Main runs the tests of a package and fails if one leaves a goroutine behind.
func Main(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "4") // most tests wait for other processes
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "8" // each check sends many messages between processes
		if AllVariants {
			checks = "20"
		}
		_ = flag.Set("rapid.checks", checks)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if signal.Ignored(syscall.SIGHUP) { // under nohup; the tested program would inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if err := Provide(); err != nil {
		return 1, err
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			return 1, err
		}
	}
	return code, nil
}

type Obj = map[string]any

// board is a state that wakes its waiters on changes.
type board struct {
	Mu sync.Mutex
	ch chan struct{}
}

func (b *board) Update(change func()) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	change()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Holds waits until cond is true or the limit is over. cond is called with the lock held.
func (b *board) Holds(limit time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		b.Mu.Lock()
		if cond() {
			b.Mu.Unlock()
			return true
		}
		if b.ch == nil {
			b.ch = make(chan struct{})
		}
		ch := b.ch
		b.Mu.Unlock()
		select {
		case <-ch:
		case <-deadline.C:
			return false
		}
	}
}

// Eventually polls for states without events.
func Eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	pause := 2 * time.Millisecond
	for end := time.Now().Add(Patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", Patience, what)
		}
		time.Sleep(pause)
		pause = min(pause*3/2, 50*time.Millisecond) // poll long waits less often
	}
}

// World is one config with its home folder, runtime folder and servers. Every process in
// it has the folder's name in its environment.
type World struct {
	T           *testing.T
	Dir         string
	Cwd         string // of commands
	Config      string
	Gateway     Obj
	Log         Obj
	OTel        Obj
	Record      Obj
	Rules       []string // each a YAML mapping in one line
	Lua         Obj
	Profiles    Obj    // by name
	Clients     string // the YAML of clients, whose order matters
	Backends    []*Backend
	Env         []string
	Written     bool
	AllowDaemon bool // a command may have left a daemon behind
	Programs    []*Program
	panes       int
	served      *Web // see Served
}

// ShortDir returns a folder for sockets, whose paths are limited to about 100 characters,
// regardless of TMPDIR.
func ShortDir(t testing.TB) string {
	t.Helper()
	base := ""
	if len(os.TempDir()) > 40 && runtime.GOOS != "windows" {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "gb")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func NewWorld(t *testing.T) *World {
	t.Helper()
	Use()
	dir := ShortDir(t)
	w := &World{T: t, Dir: dir, Cwd: dir, Config: filepath.Join(dir, "goblin.yaml"), Gateway: Obj{
		"startup_wait": "20s", "meta_tools": false, "linger": "60s",
		"start": "eager", // some tests have two daemons in a row that both need their servers
	}}
	for _, sub := range []string{"home", "run", "cfg"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	t.Cleanup(w.clean)
	return w
}

// clean stops remaining processes, and fails the test if any is not a daemon.
func (w *World) clean() {
	if w.T.Failed() {
		w.T.Logf("log of the daemon:\n%s", Tail(w.DaemonLog(), 6000))
		for _, b := range w.Backends {
			w.T.Logf("server %s received:\n%s", b.Name, b.story())
		}
	}
	if w.AllowDaemon && runtime.GOOS != "linux" {
		w.Run("stop")
	}
	told := map[int]bool{} // a second signal would end it at once
	left := w.Survivors("", Patience, func(pid int, line string) {
		if daemon, err := os.FindProcess(pid); err == nil && w.AllowDaemon && !told[pid] && strings.HasPrefix(line, Goblin+" daemon") {
			told[pid] = true
			_ = daemon.Signal(syscall.SIGTERM) // the next round shows whether it exits
		}
	})
	if len(left) > 0 {
		w.T.Errorf("processes still run: %s\nlog of the daemon:\n%s", strings.Join(left, "; "), w.DaemonLog())
		w.Kill()
	}
	for _, b := range w.Backends {
		b.close()
	}
}

// Survivors waits at most limit until no process of the world has the text in its command
// line. It returns the remaining ones. In each round it calls each for them, unless each
// is nil.
func (w *World) Survivors(holding string, limit time.Duration, each func(pid int, line string)) (left []string) {
	const look = 500 * time.Millisecond // listing all processes is expensive and new ones are rare
	for end := time.Now().Add(limit); ; {
		left = w.Processes(holding)
		var pids []string
		for _, p := range left {
			of, line, _ := strings.Cut(p, " ")
			pids = append(pids, of)
			if pid, err := strconv.Atoi(of); err == nil && each != nil {
				each(pid, line)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		lives := func(pid string) bool { return len(readProc("/proc/"+pid+"/cmdline", make([]byte, 1))) > 0 }
		for again := time.Now().Add(look); slices.ContainsFunc(pids, lives) && time.Now().Before(again); {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Processes returns this world's processes whose command line contains the text, each as
// "PID command line". It ignores zombies.
func (w *World) Processes(holding string) (found []string) {
	world, environ := []byte(w.Dir+"/"), make([]byte, 64<<10)
	EachProcess(func(pid string, cmd []byte) {
		if !bytes.Contains(cmd, world) && !bytes.Contains(readProc("/proc/"+pid+"/environ", environ), world) {
			return
		}
		line := string(bytes.ReplaceAll(bytes.TrimRight(cmd, "\x00"), []byte{0}, []byte{' '}))
		if strings.Contains(line, holding) {
			found = append(found, pid+" "+line)
		}
	})
	return found
}

// EachProcess calls f for each process of the machine with a command line, which consists
// of NUL-terminated words.
func EachProcess(f func(pid string, cmd []byte)) {
	proc, err := os.Open("/proc")
	if err != nil {
		return // no /proc
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	cmdline := make([]byte, 64<<10)
	for _, pid := range names {
		if pid[0] < '0' || pid[0] > '9' {
			continue
		}
		if cmd := readProc("/proc/"+pid+"/cmdline", cmdline); len(cmd) > 0 {
			f(pid, cmd)
		}
	}
}

// readProc reads the beginning of a /proc file, or returns nil. It is four times as fast
// as os.ReadFile, and tests read thousands.
func readProc(path string, into []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd) //nolint:errcheck // it was only read
	n, err := syscall.Read(fd, into)
	if err != nil {
		return nil
	}
	return into[:n]
}

func (w *World) Kill() {
	for _, p := range w.Processes("") {
		pid, _, _ := strings.Cut(p, " ")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
			_ = Kill(n)
		}
	}
}

// Environ returns the environment of every command of this world.
func (w *World) Environ() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(w.Dir, "home"),
		"XDG_RUNTIME_DIR=" + filepath.Join(w.Dir, "run"),
		"XDG_CONFIG_HOME=" + filepath.Join(w.Dir, "cfg"),
		"TERM=dumb",
		"GORACE=halt_on_error=1",
		"GOBLIN_NO_KEYRING=1", // tests must not use the user's keyring
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	if w.Config != "" {
		env = append(env, "GOBLIN_CONFIG="+w.Config)
	}
	return append(env, w.Env...)
}

func (w *World) Write() {
	if w.Written {
		return
	}
	w.Written = true
	var b strings.Builder
	b.WriteString("servers:\n")
	if len(w.Backends) == 0 {
		b.Reset()
		b.WriteString("servers: {}\n")
	}
	for _, s := range w.Backends {
		fmt.Fprintf(&b, "  %s: %s\n", Marshal(s.Name), Marshal(s.Conf))
	}
	fmt.Fprintf(&b, "gateway: %s\n", Marshal(w.Gateway))
	if w.Lua != nil {
		fmt.Fprintf(&b, "lua: %s\n", Marshal(w.Lua))
	}
	if w.Profiles != nil {
		fmt.Fprintf(&b, "profiles: %s\n", Marshal(w.Profiles))
	}
	if w.Clients != "" {
		fmt.Fprintf(&b, "clients: %s\n", w.Clients)
	}
	if w.Log != nil {
		fmt.Fprintf(&b, "log: %s\n", Marshal(w.Log))
	}
	if w.OTel != nil {
		fmt.Fprintf(&b, "otel: %s\n", Marshal(w.OTel))
	}
	if len(w.Rules) > 0 {
		fmt.Fprintf(&b, "rules:\n- %s\n", strings.Join(w.Rules, "\n- "))
	}
	if w.Record != nil {
		fmt.Fprintf(&b, "record: %s\n", Marshal(w.Record))
	}
	require.NoError(w.T, os.WriteFile(w.Config, []byte(b.String()), 0o600))
}

func Marshal(v any) json.RawMessage {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

type Output struct {
	Stdout, Stderr string
	Code           int
}

func (w *World) Run(args ...string) Output { return w.RunInput("", args...) }

func (w *World) RunInput(stdin string, args ...string) Output {
	w.T.Helper()
	w.Write()
	cmd := exec.Command(Goblin, args...)
	cmd.Env, cmd.Dir = w.Environ(), w.Cwd
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // a detached child may hold stderr
	require.NoError(w.T, cmd.Start())
	timer := time.AfterFunc(Patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		w.T.Fatalf("goblin %v: %v", args, err)
	}
	return Output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Succeeds runs a command that must succeed, and returns its stdout.
func (w *World) Succeeds(args ...string) string {
	w.T.Helper()
	out := w.Run(args...)
	require.Zero(w.T, out.Code, "goblin %v: %s", args, out.Stderr)
	return out.Stdout
}

type Buffer struct {
	board
	Text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.Update(func() { b.Text.Write(p) })
	return len(p), nil
}

func (b *Buffer) String() string {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Text.String()
}

type Program struct {
	T      *testing.T
	Cmd    *exec.Cmd
	Stderr Buffer
	Exited chan struct{}
}

// Start starts a command. prepare sets up its pipes.
func (w *World) Start(prepare func(*exec.Cmd), args ...string) *Program {
	w.T.Helper()
	w.Write()
	return w.Execute(Goblin, prepare, args...)
}

func (w *World) Execute(path string, prepare func(*exec.Cmd), args ...string) *Program {
	w.T.Helper()
	p := &Program{T: w.T, Cmd: exec.Command(path, args...), Exited: make(chan struct{})}
	p.Cmd.Env, p.Cmd.Dir, p.Cmd.Stderr = w.Environ(), w.Cwd, &p.Stderr
	p.Cmd.WaitDelay = 10 * time.Second
	if prepare != nil {
		prepare(p.Cmd)
	}
	require.NoError(w.T, p.Cmd.Start())
	w.Programs = append(w.Programs, p)
	go func() {
		defer close(p.Exited)
		_ = p.Cmd.Wait() // ProcessState has the result
	}()
	w.T.Cleanup(func() {
		p.Signal(syscall.SIGTERM)
		p.Ends(Patience)
		if w.T.Failed() {
			w.T.Logf("stderr of goblin %v:\n%s", args, Tail(p.Stderr.String(), 60000))
		}
		require.NotContains(w.T, p.Stderr.String(), "DATA RACE")
		require.NotContains(w.T, p.Stderr.String(), "goroutine 1 [")
	})
	return p
}

func Tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (p *Program) Signal(sig syscall.Signal) {
	select {
	case <-p.Exited:
	default:
		_ = p.Cmd.Process.Signal(sig)
	}
}

// Logs waits until stderr contains a text. It may arrive later than an answer that was
// written after it.
func (p *Program) Logs(text string) {
	p.T.Helper()
	if !p.Stderr.Holds(Patience, func() bool { return strings.Contains(p.Stderr.Text.String(), text) }) {
		p.T.Fatalf("stderr of goblin %v lacks %q", p.Cmd.Args[1:], text)
	}
}

// Ends waits for the process's exit, and kills it after the limit.
func (p *Program) Ends(limit time.Duration) int {
	p.T.Helper()
	select {
	case <-p.Exited:
		return p.Cmd.ProcessState.ExitCode() // also with no time left
	default:
	}
	select {
	case <-p.Exited:
	case <-time.After(limit):
		p.T.Errorf("goblin %v did not exit within %v", p.Cmd.Args[1:], limit)
		_ = p.Cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.Exited:
		case <-time.After(2 * time.Second):
			_ = p.Cmd.Process.Kill()
			<-p.Exited
		}
	}
	return p.Cmd.ProcessState.ExitCode()
}

var lastPort atomic.Int64

// FreePort returns a loopback port outside of the kernel's range for outgoing
// connections. So no other process takes it meanwhile.
func FreePort(t *testing.T) int {
	t.Helper()
	lastPort.CompareAndSwap(0, 10000+rand.Int64N(15000))
	for range 1000 {
		port := int(lastPort.Add(1))
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		_ = ln.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}
