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
	maxStderr   = 2 << 10 // bytes of stderr that are kept: the runtime says first what is wrong
	exitTimeout = time.Second
)

// process is a process that waits for a script or runs one.
type process struct {
	cmd          *exec.Cmd
	in           io.WriteCloser
	out          *os.File
	stderr       prefixWriter  // to be read once exited is closed
	exited       chan struct{} // it has been waited for
	shutdownOnce sync.Once
}

// prefixWriter keeps the beginning of what is written to it.
type prefixWriter []byte

func (h *prefixWriter) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), maxStderr-len(*h))]...)
	return len(p), nil
}

// startProcess starts a process.
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
	out, stdout, err := os.Pipe() // its end is read after that of the process
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

// wait starts the process and waits for its end. On Linux the process dies with
// the thread that started it, hence one goroutine that keeps its thread.
func (p *process) wait(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is asked of ProcessState
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

// shutdown waits briefly for the process to exit, then kills it and waits for its end.
func (p *process) shutdown() {
	p.shutdownOnce.Do(func() {
		_ = p.in.Close()
		wait := time.AfterFunc(exitTimeout, p.kill)
		<-p.exited
		wait.Stop()
		_ = p.out.Close()
	})
}

// outOfMemoryTexts are the last words of a process that got no more memory. Where Go's
// runtime does not expect that, it cannot start a thread, or faults: sigcode=1 is a
// fault, not a signal that somebody sent.
var outOfMemoryTexts = []string{
	"out of memory", "cannot allocate memory", "stack exceeds", "stack overflow",
	"failed to create new OS thread", "pthread_create failed", "sigcode=1 ",
}

// crash is the error of a script whose process ended without a word.
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
	return &Error{Kind: Crash, Message: fmt.Sprintf("the script's process ended unexpectedly (%s)", how)}
}
