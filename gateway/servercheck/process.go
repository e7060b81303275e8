package servercheck

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
)

var (
	errSilent = errors.New("no answer")
	errExited = errors.New("the process exited")
)

const (
	// drainTime is the maximum time for output after the exit, and for late exits of
	// child processes.
	drainTime = time.Second
	// maxStderr is the size of the kept end of stderr, in bytes.
	maxStderr = 4 << 10
)

// process is a started local server. Its methods must not be called concurrently.
type process struct {
	c      *checker
	cmd    *exec.Cmd
	group  *childproc.Group
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	out    *output
	lastID int64
	began  time.Time

	orphans int           // valid after exited is closed
	exitErr error         // valid after exited is closed
	exited  chan struct{} // the process was reaped and its group killed
	held    bool          // a process outside of the group held stdout; valid after stop

	quiet   chan struct{} // stderr is at its end
	reading sync.WaitGroup
	tailMu  sync.Mutex // guards tail
	tail    []byte     // the end of stderr
	stopped bool
}

func (c *checker) start(s *config.Server) (*process, error) {
	env := s.Environ(os.LookupEnv, os.Environ())
	path, err := childproc.LookPath(s.Command, env)
	if err != nil {
		return nil, err
	}
	p := &process{c: c, exited: make(chan struct{}), quiet: make(chan struct{}), began: time.Now()}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{s.Command}, s.Args...), Env: env, Dir: s.Cwd}
	if err := p.open(); err != nil {
		return nil, err
	}
	return p, nil
}

// open starts the process. It passes files, so that waiting for the exit does not wait for
// other holders of the pipes.
func (p *process) open() error {
	var ends [6]*os.File
	var ended <-chan error
	var err error
	for i := 0; i < len(ends) && err == nil; i += 2 {
		ends[i], ends[i+1], err = os.Pipe()
	}
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = ends[0], ends[3], ends[5]
		p.stdin, p.stdout, p.stderr = ends[1], ends[2], ends[4]
		p.group, ended, err = p.c.o.Children.Start(p.cmd, p.c.r.Server, p.countOrphans)
	}
	if err != nil {
		for _, f := range ends {
			if f != nil {
				_ = f.Close()
			}
		}
		return err
	}
	for _, f := range []*os.File{ends[0], ends[3], ends[5]} {
		_ = f.Close()
	}
	go func() {
		p.exitErr = <-ended
		close(p.exited)
	}()
	p.out = newOutput(p.c, func(frame []byte) { _ = p.write(frame) })
	p.reading.Go(func() { p.out.read(p.stdout) })
	p.reading.Go(p.readErrors)
	return nil
}

// countOrphans counts the rest of the group after the exit of the process.
func (p *process) countOrphans() {
	for end := time.Now().Add(drainTime); ; time.Sleep(20 * time.Millisecond) {
		if p.orphans = childproc.Members(p.cmd.Process.Pid); p.orphans == 0 || time.Now().After(end) {
			return
		}
	}
}

func (p *process) readErrors() {
	defer close(p.quiet)
	buf := make([]byte, maxStderr)
	for {
		n, err := p.stderr.Read(buf)
		p.tailMu.Lock()
		p.tail = append(p.tail, buf[:n]...)
		p.tail = p.tail[max(0, len(p.tail)-maxStderr):]
		p.tailMu.Unlock()
		if err != nil {
			return
		}
	}
}

// lastLine returns the last line of stderr of a process that exited, or "".
func (p *process) lastLine() string {
	all := p.errorLines()
	return all[len(all)-1]
}

// errorLines returns the last lines of stderr of a process that exited. Without output,
// there is one empty line.
func (p *process) errorLines() []string {
	select {
	case <-p.quiet:
	case <-time.After(drainTime): // another process holds it
	}
	p.tailMu.Lock()
	defer p.tailMu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(p.tail)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

const writeTime = 5 * time.Second

func (p *process) write(frame []byte) error {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeTime)) // Windows has none
	_, err := p.stdin.Write(append(frame[:len(frame):len(frame)], '\n'))
	return err
}

// ask implements [link].
func (p *process) ask(ctx context.Context, method string, params []byte, limit time.Duration) answer {
	p.lastID++
	p.out.expect(p.lastID)
	frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q`, p.lastID, method)
	if params != nil {
		frame = append(append(frame, `,"params":`...), params...)
	}
	began := time.Now()
	if err := p.write(append(frame, '}')); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = p.waitExit(ctx, drainTime) // a closed stdin usually means an exit
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	a := answer{}
	select {
	case a = <-p.out.answers:
	case <-p.out.ended:
		select { // an answer just before the exit
		case a = <-p.out.answers:
		default:
			a.err = errExited
		}
	case <-timer.C:
		a.err = errSilent
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	a.took = time.Since(began)
	p.out.expect(0)
	return a
}

func (p *process) notify(method string) {
	_ = p.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)) // the next request notices an exit
}

func (p *process) waitExit(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// exit describes how a process stopped.
type exit struct {
	stdin, signal bool // closing stdin sufficed; otherwise SIGTERM did
	code          int  // negative after a signal
}

// stop closes stdin, then terminates, then kills the process, each after limit. It returns
// when all output was read.
func (p *process) stop(ctx context.Context, limit time.Duration) (e exit) {
	if p.stopped {
		return e
	}
	p.stopped = true
	_ = p.stdin.Close()
	e.stdin = p.waitExit(ctx, limit)
	if !e.stdin {
		p.group.Terminate()
		if e.signal = p.waitExit(context.WithoutCancel(ctx), limit); !e.signal {
			p.group.Kill()
			<-p.exited
		}
	}
	if p.cmd.ProcessState != nil {
		e.code = p.cmd.ProcessState.ExitCode()
	}
	deadline := time.Now().Add(drainTime)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	p.reading.Wait()
	p.held = errors.Is(p.out.err, os.ErrDeadlineExceeded)
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	return e
}

// readLine reads a line without its line break, and drops what exceeds most bytes. After
// an error no line break followed.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte("\n"))
		if room := most - len(line); len(part) > room {
			part, long = part[:room], true
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
