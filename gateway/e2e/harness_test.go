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
	"path/filepath"
	"runtime"
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

// patience bounds every wait; a correct program needs a small part of it.
const patience = 60 * time.Second

// The exit codes of the contract.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitConfig   = 3
	exitConnect  = 4
	exitTimeout  = 6
	exitNotFound = 7
)

var (
	goblin     string // the binary under test
	fakeserver string
	badserver  string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "4") // most tests wait for other processes
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("rapid.checks", "20") // each of them is many messages between processes
	}
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "gbin")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	fakeserver = filepath.Join(dir, "fakeserver")
	if err := goBuild(fakeserver, "goblin/gateway/internal/fakeserver"); err != nil {
		return 1, err
	}
	badserver = filepath.Join(dir, "badserver")
	if err := goBuild(badserver, "goblin/gateway/internal/badserver"); err != nil {
		return 1, err
	}
	if goblin = os.Getenv("GOBLIN_E2E_BINARY"); goblin == "" {
		goblin = filepath.Join(dir, "goblin")
		if err := goBuild(goblin, "goblin"); err != nil {
			return 1, err
		}
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

func goBuild(out, pkg string) error {
	args := []string{"build", "-o", out}
	if os.Getenv("GOBLIN_E2E_RACE") != "" {
		args = append(args, "-race")
	}
	if text, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// obj is a JSON object in a test.
type obj = map[string]any

// board is a state with a wake-up for those that wait for it.
type board struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *board) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// holds waits until cond, which is called with the lock held, or the deadline.
func (b *board) holds(limit time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		b.mu.Lock()
		if cond() {
			b.mu.Unlock()
			return true
		}
		if b.ch == nil {
			b.ch = make(chan struct{})
		}
		ch := b.ch
		b.mu.Unlock()
		select {
		case <-ch:
		case <-deadline.C:
			return false
		}
	}
}

// eventually is for states that nobody announces.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// world is one config with its home folder, runtime folder and backends. Every
// process in it carries its folder's name in its environment.
type world struct {
	t        *testing.T
	dir      string
	cwd      string // of commands
	config   string
	gateway  obj
	log      obj
	lua      obj
	backends []*backend
	env      []string
	written  bool
	hosted   bool // a command may have left a host behind
	programs []*program
	panes    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "gb") // short: socket paths are limited
	require.NoError(t, err)
	w := &world{t: t, dir: dir, cwd: dir, config: filepath.Join(dir, "goblin.yaml"), gateway: obj{
		"startup_wait": "20s", "meta_tools": false, "linger": "60s",
	}}
	for _, sub := range []string{"home", "run", "cfg"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	t.Cleanup(w.clean)
	return w
}

// clean ends what is left and complains if that was anything but a host.
func (w *world) clean() {
	if w.t.Failed() {
		w.t.Logf("log of the host:\n%s", tail(w.hostLog(), 6000))
		for _, b := range w.backends {
			w.t.Logf("what backend %s was told:\n%s", b.name, b.story())
		}
	}
	var left []string
	stop := time.Now()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if w.hosted && !time.Now().Before(stop) {
			// Again later: one of several hosts that started at once may find
			// out last that it is not needed, after the first has ended.
			w.run("stop")
			stop = time.Now().Add(3 * time.Second)
		}
		if left = w.processes(""); len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			w.t.Errorf("processes are left: %s\nlog of the host:\n%s", strings.Join(left, "; "), w.hostLog())
			w.kill()
			break
		}
	}
	for _, b := range w.backends {
		b.close()
	}
	_ = os.RemoveAll(w.dir)
}

// processes lists those of this world whose command line holds the text, as
// "PID command line". Zombies are not counted.
func (w *world) processes(holding string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cmd, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(cmd) == 0 {
			continue
		}
		env, _ := os.ReadFile(dir + "/environ")
		line := string(bytes.ReplaceAll(bytes.TrimRight(cmd, "\x00"), []byte{0}, []byte{' '}))
		if strings.Contains(line+string(env), w.dir+"/") && strings.Contains(line, holding) {
			found = append(found, filepath.Base(dir)+" "+line)
		}
	}
	return found
}

func (w *world) kill() {
	for _, p := range w.processes("") {
		pid, _, _ := strings.Cut(p, " ")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
			_ = kill(n)
		}
	}
}

// environ is what every command of this world gets.
func (w *world) environ() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(w.dir, "home"),
		"XDG_RUNTIME_DIR=" + filepath.Join(w.dir, "run"),
		"XDG_CONFIG_HOME=" + filepath.Join(w.dir, "cfg"),
		"TERM=dumb",
		"GORACE=halt_on_error=1",
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	if w.config != "" {
		env = append(env, "GOBLIN_CONFIG="+w.config)
	}
	return append(env, w.env...)
}

// write makes the config file of the backends, once.
func (w *world) write() {
	if w.written {
		return
	}
	w.written = true
	var b strings.Builder
	b.WriteString("servers:\n")
	if len(w.backends) == 0 {
		b.Reset()
		b.WriteString("servers: {}\n")
	}
	for _, s := range w.backends {
		fmt.Fprintf(&b, "  %s: %s\n", marshal(s.name), marshal(s.conf))
	}
	fmt.Fprintf(&b, "gateway: %s\n", marshal(w.gateway))
	if w.lua != nil {
		fmt.Fprintf(&b, "lua: %s\n", marshal(w.lua))
	}
	if w.log != nil {
		fmt.Fprintf(&b, "log: %s\n", marshal(w.log))
	}
	require.NoError(w.t, os.WriteFile(w.config, []byte(b.String()), 0o600))
}

func marshal(v any) json.RawMessage {
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

// output is what a finished command said.
type output struct {
	stdout, stderr string
	code           int
}

// run runs a command of Goblin to its end.
func (w *world) run(args ...string) output { return w.runInput("", args...) }

func (w *world) runInput(stdin string, args ...string) output {
	w.t.Helper()
	w.write()
	cmd := exec.Command(goblin, args...)
	cmd.Env, cmd.Dir = w.environ(), w.cwd
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // a detached child may hold stderr
	require.NoError(w.t, cmd.Start())
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		w.t.Fatalf("goblin %v: %v", args, err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// succeeds runs a command that must end well and gives its stdout.
func (w *world) succeeds(args ...string) string {
	w.t.Helper()
	out := w.run(args...)
	require.Zero(w.t, out.code, "goblin %v: %s", args, out.stderr)
	return out.stdout
}

// buffer is stderr of a running process.
type buffer struct {
	board
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.update(func() { b.text.Write(p) })
	return len(p), nil
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// program is a running process of Goblin.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr buffer
	exited chan struct{}
}

// start runs a command; pipes are set up by prepare.
func (w *world) start(prepare func(*exec.Cmd), args ...string) *program {
	w.t.Helper()
	w.write()
	return w.execute(goblin, prepare, args...)
}

func (w *world) execute(path string, prepare func(*exec.Cmd), args ...string) *program {
	w.t.Helper()
	p := &program{t: w.t, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = w.environ(), w.cwd, &p.stderr
	p.cmd.WaitDelay = 10 * time.Second
	if prepare != nil {
		prepare(p.cmd)
	}
	require.NoError(w.t, p.cmd.Start())
	w.programs = append(w.programs, p)
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // how it ended is asked of ProcessState
	}()
	w.t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		p.ends(patience)
		if w.t.Failed() {
			w.t.Logf("stderr of goblin %v:\n%s", args, tail(p.stderr.String(), 60000))
		}
		require.NotContains(w.t, p.stderr.String(), "DATA RACE")
		require.NotContains(w.t, p.stderr.String(), "goroutine 1 [")
	})
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (p *program) signal(sig syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = p.cmd.Process.Signal(sig)
	}
}

// ends waits for the end of the process; one that does not is killed.
func (p *program) ends(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode() // also with no time left
	default:
	}
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.t.Errorf("goblin %v did not end within %v", p.cmd.Args[1:], limit)
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.exited:
		case <-time.After(2 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

var lastPort atomic.Int64

// freePort is a loopback port outside of the range that the kernel gives to
// outgoing connections, so that nobody takes it in between.
func freePort(t *testing.T) int {
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
