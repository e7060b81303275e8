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

	"goblin/meta/lua/wire"
)

const (
	maxStderr = 2 << 10 // bytes of stderr that are kept: the runtime says first what is wrong
	dying     = time.Second
)

// process is a process that waits for a script or runs one.
type process struct {
	cmd        *exec.Cmd
	in         *os.File
	out        *os.File
	errs       *os.File
	stderr     []byte // its beginning, once stderrRead is closed
	stderrRead chan struct{}
	exited     chan struct{} // it has been waited for
	ending     sync.Once
}

// startProcess starts a process.
func startProcess(command []string) (*process, error) {
	p := &process{
		cmd:        &exec.Cmd{Path: command[0], Args: append([]string{"goblin"}, command[1:]...), Env: []string{}, Dir: string(filepath.Separator), SysProcAttr: attributes()},
		stderrRead: make(chan struct{}), exited: make(chan struct{}),
	}
	var files []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, r, w)
	}
	// The files go to the process as they are, so that nobody has to copy.
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = files[0], files[3], files[5]
	p.in, p.out, p.errs = files[1], files[2], files[4]
	started := make(chan error, 1)
	go p.wait(started)
	err := <-started
	closeAll([]*os.File{files[0], files[3], files[5]})
	if err != nil {
		closeAll([]*os.File{p.in, p.out, p.errs})
		return nil, err
	}
	go p.readStderr()
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
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

// readStderr keeps the beginning of stderr and reads the rest.
func (p *process) readStderr() {
	defer close(p.stderrRead)
	p.stderr, _ = io.ReadAll(io.LimitReader(p.errs, maxStderr))
	_, _ = io.Copy(io.Discard, p.errs)
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process, with whatever it may have started against all odds.
func (p *process) kill() {
	if p.alive() { // or its number may be another's
		killGroup(p.cmd.Process)
	}
}

// end waits a moment for the end of a process that is done, kills one that is not,
// and waits until it is gone.
func (p *process) end() {
	p.ending.Do(func() {
		_ = p.in.Close()
		wait := time.NewTimer(dying)
		defer wait.Stop()
		select {
		case <-p.exited:
		case <-wait.C:
			p.kill()
			<-p.exited
		}
		_ = p.errs.SetReadDeadline(time.Now().Add(dying)) // whoever else holds it
		<-p.stderrRead
		closeAll([]*os.File{p.out, p.errs})
	})
}

// noMemory are the last words of a process that got no more memory. Where Go's
// runtime does not expect that, it cannot start a thread, or faults: sigcode=1 is a
// fault, not a signal that somebody sent.
var noMemory = []string{
	"out of memory", "cannot allocate memory", "stack exceeds", "stack overflow",
	"failed to create new OS thread", "pthread_create failed", "sigcode=1 ",
}

// crash is the error of a script whose process ended without a word.
func (p *process) crash(l Limits, err error) *Error {
	words := strings.ToValidUTF8(string(p.stderr), "\uFFFD")
	for _, sign := range noMemory {
		if strings.Contains(words, sign) {
			return wire.Large(l.Memory)
		}
	}
	how := p.cmd.ProcessState.String()
	if p.cmd.ProcessState.Success() && err != nil {
		how = err.Error()
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(words), "\n"); first != "" {
		how += ": " + first[:min(len(first), wire.MaxMessage)]
	}
	return &Error{Kind: Crash, Message: fmt.Sprintf("the script's process ended unexpectedly (%s)", how)}
}
