package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/upstream/stderr"
	"goblin/gateway/upstream/wire"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	// maxStall is how long a child may leave its stdin unread while something
	// waits to be written.
	maxStall = 60 * time.Second
	// maxUnsent is how many bytes may wait for a child besides one frame.
	maxUnsent = 16 << 20
	// maxStderrLine is where a line of stderr is cut.
	maxStderrLine = 8 << 10
	// maxStderrRate is how many lines of stderr go to the journal per second.
	maxStderrRate = 1000
	// maxQuote is the maximum size of a kept line of stderr, in bytes.
	maxQuote = 300
	// maxSplit is how long a secret may be that does not show where a line of
	// stderr was cut.
	maxSplit = 512
)

// stdio is a child process that speaks over its stdin and stdout.
type stdio struct {
	*link
	cmd        *exec.Cmd
	group      *childproc.Group
	stdin      *os.File
	stdout     *os.File
	stderr     *os.File
	out        *jsonrpc.SendQueue
	exited     chan struct{} // the child has been reaped and its group killed
	stdoutDone chan struct{} // stdout has been read to its end
	stderrDone chan struct{} // stderr has been read to its end
	exitErr    error         // of cmd.Wait, after exited
	loops      sync.WaitGroup

	errMu      sync.Mutex  // guards stderrTail
	stderrTail stderr.Tail // redacted
}

// dialStdio starts the server's child.
func dialStdio(ctx context.Context, s *Server, unit string) (*link, error) {
	cfg, err := s.definition(ctx, unit)
	if err != nil {
		return nil, err
	}
	env := cfg.Environ(os.LookupEnv, os.Environ())
	path, err := childproc.LookPath(cfg.Command, env)
	if err != nil {
		return nil, s.newError(ConnectionError, fmt.Sprintf(
			"the command %q was not found: install it, or give its full path as command", cfg.Command), err)
	}
	if cfg.Cwd != "" {
		if st, err := os.Stat(cfg.Cwd); err != nil || !st.IsDir() {
			return nil, s.newError(ConnectionError, fmt.Sprintf("cwd %q is not a folder", cfg.Cwd), err)
		}
	}
	c := &stdio{link: newLink(s, unit, "stdio"), exited: make(chan struct{}), stdoutDone: make(chan struct{}), stderrDone: make(chan struct{})}
	c.wire, c.batch = c, new(jsonrpc.WriteBatch)
	c.cmd = &exec.Cmd{Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Env: env, Dir: cfg.Cwd}
	if err := c.start(); err != nil {
		c.cancel()
		return nil, s.newError(ConnectionError, fmt.Sprintf("the command %q does not start: %v", cfg.Command, childproc.StripProgram(err)), err)
	}
	return c.link, nil
}

func (c *stdio) start() error {
	var child, own []*os.File
	fail := func(err error) error {
		for _, f := range append(child, own...) {
			_ = f.Close()
		}
		return err
	}
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		if i == 0 {
			child, own = append(child, r), append(own, w)
		} else {
			child, own = append(child, w), append(own, r)
		}
	}
	// The files go to the child as they are, so that Wait waits for the child
	// alone and not for whoever else holds the pipes.
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = child[0], child[1], child[2]
	c.stdin, c.stdout, c.stderr = own[0], own[1], own[2]
	started := make(chan error, 1)
	go c.runChild(started)
	if err := <-started; err != nil {
		return fail(err)
	}
	for _, f := range child {
		_ = f.Close()
	}
	c.pid = c.cmd.Process.Pid
	c.out = jsonrpc.NewStream(c.stdin)
	c.out.SetOwner(c.srv.memory)
	c.loops.Add(3)
	go func() {
		defer c.loops.Done()
		if err := c.out.Run(); err != nil && !errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, os.ErrClosed) {
			// A child that closes its stdin is about to end; its end says more.
			c.failProcess("closed its stdin", err)
		}
	}()
	go c.readErrors()
	go c.read()
	return nil
}

// runChild starts the child, waits for its end and kills what it left behind. On
// Linux the child dies with the thread that started it, hence one goroutine
// that keeps its thread for the child's life.
func (c *stdio) runChild(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var err error
	if c.group, err = childproc.StartGroup(c.cmd, c.srv.opt.Children.SurvivesExit()); err != nil {
		started <- err
		return
	}
	childproc.Track(c.group, true)
	unrecord := c.srv.opt.Children.Add(c.cmd.Process.Pid, c.srv.Name(), c.cmd.Path)
	started <- nil
	c.exitErr = c.group.Reap(c.cmd)
	unrecord()
	childproc.Track(c.group, false)
	// A process that left the group may still hold the pipe.
	_ = c.stdout.SetReadDeadline(time.Now().Add(c.srv.tune.drain))
	close(c.exited)
}

// read is the read loop.
func (c *stdio) read() {
	defer c.loops.Done()
	r := jsonrpc.NewReader(c.stdout, c.srv.opt.Limits.Frame).CheckWhileReading(c.srv.opt.Limits.Depth)
	r.SetOwner(c.srv.memory, func() {
		c.fail(c.srv.newError(ConnectionError, "the process stopped in the middle of a message", nil))
	})
	defer c.batch.Flush()
	for {
		if !r.Ready() {
			c.batch.Flush()
		}
		frame, err := r.Read()
		if err != nil {
			var long *jsonrpc.TooLongError
			if !errors.As(err, &long) {
				close(c.stdoutDone)
				c.failProcess("closed its stdout", err)
				return
			}
			c.handleTooLong(long)
			continue
		}
		m, err := r.Parse(frame)
		m, err = wire.RepairFrame(frame, c.srv.opt.Limits.Depth, m, err)
		if err != nil && r.Truncated() {
			// The last line has no end. It is no message, so the child died
			// while it wrote, and the calls fail for that.
			c.srv.reportSkipped(frame, err)
			continue
		}
		if err != nil && c.Info().Protocol == "" {
			c.keepLine(frame[:min(len(frame), maxStderrLine)]) // a program's help, or its mistake, on the wrong stream
		}
		if c.ctx.Err() == nil {
			c.handleParsed(c.ctx, nil, frame, &m, err)
		}
	}
}

// failProcess ends the connection because of the child, and says how it ended.
func (c *stdio) failProcess(what string, cause error) {
	wait := time.NewTimer(c.srv.tune.drain)
	defer wait.Stop()
	if errors.Is(cause, io.EOF) || errors.Is(cause, os.ErrDeadlineExceeded) {
		cause = nil
	}
	select {
	case <-c.done:
		return
	case <-c.exited:
		for _, read := range []chan struct{}{c.stdoutDone, c.stderrDone} {
			select {
			case <-read:
			case <-wait.C:
				wait.Reset(0) // nor is the other waited for
			}
		}
		what, cause = "the process ended", io.EOF
		if c.exitErr != nil {
			what, cause = what+": "+c.exitErr.Error(), c.exitErr
		}
	case <-wait.C:
		what = "the process " + what
	}
	c.fail(c.explain(c.srv.newError(ConnectionError, what, cause), true))
}

// readErrors brings stderr to the journal, as far as it is not too much.
func (c *stdio) readErrors() {
	defer c.loops.Done()
	defer close(c.stderrDone)
	r := bufio.NewReaderSize(c.stderr, maxStderrLine)
	second, lines, dropped := time.Now(), 0, 0
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			// It is cut: a secret across the cut would not be found.
			text := c.srv.opt.Redact(string(line))
			line = []byte(text[:max(0, len(text)-maxSplit)])
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if now := time.Now(); now.Sub(second) > time.Second {
				if dropped > 0 {
					c.srv.note(slog.LevelWarn, fmt.Sprintf("%d lines of stderr were not kept: too many per second", dropped))
				}
				second, lines, dropped = now, 0, 0
			}
			c.keepLine(line)
			if lines++; lines <= maxStderrRate {
				c.srv.journal(slog.LevelInfo, registry.SourceStderr, string(bytes.ToValidUTF8(line, []byte("\uFFFD"))))
			} else {
				dropped++
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n') // the rest of a line that was cut
		}
		if err != nil {
			return
		}
	}
}

// keepLine keeps a line of stderr for quoting. Before the handshake is complete, it also
// keeps lines of stdout that are no messages.
func (c *stdio) keepLine(line []byte) {
	text := strings.ToValidUTF8(c.srv.quote(string(line), maxQuote), "\uFFFD")
	c.errMu.Lock()
	defer c.errMu.Unlock()
	c.stderrTail.Add(text)
}

// explain adds to e what the child wrote to stderr, and the variables that it lacks. quote
// chooses whether the reason names the most telling line.
func (c *stdio) explain(e *Error, quote bool) *Error {
	c.errMu.Lock()
	lines := c.stderrTail.Lines()
	c.errMu.Unlock()
	for i, line := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r < 0x20 || 0x7f <= r && r < 0xa0 {
				return ' '
			}
			return r
		}, line)
	}
	e.Lines = stderr.Pick(lines)
	cause, fix := c.diagnose(append(lines, e.Reason))
	if quote && len(e.Lines) > 0 {
		e.Reason += "; its last words: " + stderr.ErrorLine(lines)
	}
	if cause != "" {
		e.Reason += "; " + cause
	}
	e.Fix = fix
	return e
}

// diagnose returns which variables the child lacks by its own words, and the fix. cause is
// "" if the words explain the error.
func (c *stdio) diagnose(words []string) (cause, fix string) {
	fix, explaining := stderr.FindFix(words)
	missing, mentioned := stderr.Variables(words)
	if c.Info().Protocol != "" { // its words may be about anything
		mentioned = nil
	}
	cause, add := stderr.MissingVariables(&c.srv.cfg, missing, append(mentioned, explaining...), c.cmd.Env, os.LookupEnv, c.srv.opt.EnvNames)
	if cause != "" {
		fix = add
	}
	return cause, fix
}

func (c *stdio) isLocal() bool      { return true }
func (c *stdio) isLegacyOnly() bool { return false }

func (c *stdio) request(call *Call, id int64, frame []byte) {
	switch {
	case len(frame) > memlimit.FreeSize && c.out.UnsentBytes()+int64(len(frame)) > maxUnsent+c.srv.opt.Limits.Frame || !c.srv.memory.CanReserve(len(frame)):
		// Whoever sends so much must not cost others the connection.
		c.calls.Fail(id, c.srv.newError(ConnectionError, "does not take requests as fast as they come; send it again later", nil))
		c.checkStall()
	case call.Batch != nil:
		rawjson.OneLine(frame[:len(frame)-1])
		call.Batch.Send(c.out, frame)
		c.checkStall()
	case c.calls.Len() > 1:
		c.write(frame, c.out.SendBuffered)
	default:
		c.write(frame, c.out.Send)
	}
}

func (c *stdio) initialized(_ context.Context, frame []byte) error {
	c.send(frame)
	return nil
}

func (c *stdio) respond(frame []byte) { c.send(frame) }

func (c *stdio) send(frame []byte) { c.write(frame, c.out.Send) }

func (c *stdio) write(frame []byte, send func([]byte)) {
	rawjson.OneLine(frame[:len(frame)-1]) // a line is a message
	send(frame)
	c.checkStall()
}

// checkStall closes the connection of a child that does not read its stdin.
func (c *stdio) checkStall() {
	unsent := c.out.UnsentBytes()
	if unsent == 0 {
		return
	}
	if unsent > maxUnsent+c.srv.opt.Limits.Frame || c.out.StalledFor() > c.srv.tune.stall {
		c.fail(c.srv.newError(ConnectionError, "the process does not read its stdin", nil))
	}
}

// close stops the child as MCP's stdio transport asks: its stdin is closed; if
// that does not end it, its group is terminated, and then killed.
func (c *stdio) close() {
	c.out.Close(jsonrpc.ErrClosed)
	_ = c.stdin.Close()
	grace := c.srv.tune.stop
	if !c.waitExit(grace) {
		c.group.Terminate()
		if !c.waitExit(grace) {
			c.group.Kill()
			c.waitExit(grace)
		}
	}
	// Whoever still holds the pipes cannot hold the loops.
	_ = c.stdout.SetReadDeadline(time.Now())
	_ = c.stderr.SetReadDeadline(time.Now().Add(c.srv.tune.drain))
	c.loops.Wait()
	_ = c.stdout.Close()
	_ = c.stderr.Close()
}

func (c *stdio) waitExit(limit time.Duration) bool {
	select {
	case <-c.exited:
		return true
	case <-time.After(limit):
		return false
	}
}
