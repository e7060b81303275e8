package lua

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"goblin/meta/lua/worker"
)

const (
	maxStderr   = 2 << 10 // stored; the runtime prints the cause first
	exitTimeout = time.Second
)

type process struct {
	cmd          *exec.Cmd
	in           io.WriteCloser
	out          *os.File
	stderr       prefixWriter  // readable once exited is closed
	exited       chan struct{} // closed after Wait
	shutdownOnce sync.Once
}

// prefixWriter keeps the first maxStderr bytes.
type prefixWriter []byte

func (h *prefixWriter) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), maxStderr-len(*h))]...)
	return len(p), nil
}

func startProcess(command []string) (*process, error) {
	p := &process{
		cmd: &exec.Cmd{
			Path: command[0], Args: append([]string{"goblin"}, command[1:]...), Env: []string{}, Dir: string(filepath.Separator),
			SysProcAttr: attributes(), WaitDelay: exitTimeout,
		},
		exited: make(chan struct{}),
	}
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe() // readable after the process exited
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	p.in, p.out, p.cmd.Stdout = in, out, stdout
	started := make(chan error, 1)
	go p.wait(started)
	err = <-started
	_ = stdout.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return p, nil
}

// On Linux the process dies with the thread that started it, so this goroutine keeps its
// thread.
func (p *process) wait(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // ProcessState has the outcome
	close(p.exited)
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// shutdown waits briefly for the process to exit, then kills it.
func (p *process) shutdown() {
	p.shutdownOnce.Do(func() {
		_ = p.in.Close()
		wait := time.AfterFunc(exitTimeout, p.kill)
		<-p.exited
		wait.Stop()
		_ = p.out.Close()
	})
}

// outOfMemoryTexts occur on stderr of a process that ran out of memory. Where Go's
// runtime does not handle that, it cannot start a thread or faults: sigcode=1 is a fault,
// not a sent signal.
var outOfMemoryTexts = []string{
	"out of memory", "cannot allocate memory", "stack exceeds", "stack overflow",
	"failed to create new OS thread", "pthread_create failed", "sigcode=1 ",
}

func (p *process) crash(l Limits, err error) *Error {
	words := strings.ToValidUTF8(string(p.stderr), "\uFFFD")
	for _, sign := range outOfMemoryTexts {
		if strings.Contains(words, sign) {
			return worker.MemoryError(l.Memory)
		}
	}
	how := p.cmd.ProcessState.String()
	if p.cmd.ProcessState.Success() && err != nil {
		how = err.Error()
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(words), "\n"); first != "" {
		how += ": " + first[:min(len(first), worker.MaxMessage)]
	}
	return &Error{Kind: Crash, Message: fmt.Sprintf("the script's process exited unexpectedly (%s)", how)}
}
