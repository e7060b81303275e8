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
	// maxStall is the maximum time that a child may not read its stdin while data is
	// queued.
	maxStall = 60 * time.Second
	// maxUnsent is the maximum queued data for a child, in bytes, in addition to one
	// frame.
	maxUnsent = 16 << 20
	// maxStderrLine is the maximum length of a stderr line, in bytes.
	maxStderrLine = 8 << 10
	// maxStderrRate is the maximum number of journaled stderr lines per second.
	maxStderrRate = 1000
	// maxQuote is the maximum length of a stored stderr line, in bytes.
	maxQuote = 300
	// maxSplit is the number of bytes removed before a cut in a line. A cut may split a
	// secret of this length.
	maxSplit = 512
)

type stdio struct {
	*link
	cmd        *exec.Cmd
	group      *childproc.Group
	stdin      *os.File
	stdout     *os.File
	stderr     *os.File
	out        *jsonrpc.SendQueue
	exited     chan struct{} // the child was reaped and its group killed
	stdoutDone chan struct{}
	stderrDone chan struct{}
	exitErr    error // valid after exited is closed
	loops      sync.WaitGroup

	errMu      sync.Mutex  // guards stderrTail
	stderrTail stderr.Tail // redacted
}

func dialStdio(ctx context.Context, s *Server, unit string) (*link, error) {
	cfg, err := s.definition(ctx, unit)
	if err != nil {
		return nil, err
	}
	env := cfg.Environ(os.LookupEnv, os.Environ())
	path, err := childproc.LookPath(cfg.Command, env)
	if err != nil {
		return nil, s.newError(ConnectionError, fmt.Sprintf(
			"command %q not found; install it or set the full path in command", cfg.Command), err)
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
		return nil, s.newError(ConnectionError, fmt.Sprintf("command %q does not start: %v", cfg.Command, childproc.StripProgram(err)), err)
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
	// Files are passed directly, so that Wait doesn't wait for others that hold the
	// pipes.
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = child[0], child[1], child[2]
	c.stdin, c.stdout, c.stderr = own[0], own[1], own[2]
	group, exited, err := c.srv.opt.Children.Start(c.cmd, c.srv.Name(), func() {})
	if err != nil {
		return fail(err)
	}
	c.group = group
	go func() {
		c.exitErr = <-exited
		// A process that left the group may still hold the pipe.
		_ = c.stdout.SetReadDeadline(time.Now().Add(c.srv.tune.drain))
		close(c.exited)
	}()
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
			// A child that closes its stdin will exit; the exit status says more.
			c.failProcess("closed its stdin", err)
		}
	}()
	go c.readErrors()
	go c.read()
	return nil
}

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
			// The unfinished last line is not a message: the child died while writing.
			// Its calls fail for that reason.
			c.srv.reportSkipped(frame, err)
			continue
		}
		if err != nil && c.Info().Protocol == "" {
			c.keepLine(frame[:min(len(frame), maxStderrLine)]) // help or an error on the wrong stream
		}
		if c.ctx.Err() == nil {
			c.handleParsed(c.ctx, nil, frame, &m, err)
		}
	}
}

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
				wait.Reset(0) // don't wait for the other either
			}
		}
		what, cause = "the process exited", io.EOF
		if c.exitErr != nil {
			what, cause = what+": "+c.exitErr.Error(), c.exitErr
		}
	case <-wait.C:
		what = "the process " + what
	}
	c.fail(c.explain(c.srv.newError(ConnectionError, what, cause), true))
}

func (c *stdio) readErrors() {
	defer c.loops.Done()
	defer close(c.stderrDone)
	r := bufio.NewReaderSize(c.stderr, maxStderrLine)
	second, lines, dropped := time.Now(), 0, 0
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			// Drop text before the cut, which may split a secret.
			text := c.srv.opt.Redact(string(line))
			line = []byte(text[:max(0, len(text)-maxSplit)])
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if now := time.Now(); now.Sub(second) > time.Second {
				if dropped > 0 {
					c.srv.note(slog.LevelWarn, fmt.Sprintf("%d lines of stderr dropped: too many per second", dropped))
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
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// keepLine stores a stderr line for quoting. Before the handshake it also stores stdout
// lines that are not messages.
func (c *stdio) keepLine(line []byte) {
	text := strings.ToValidUTF8(c.srv.quote(string(line), maxQuote), "\uFFFD")
	c.errMu.Lock()
	defer c.errMu.Unlock()
	c.stderrTail.Add(text)
}

// explain adds the child's stderr and missing variables to e. If quote is set, the reason
// quotes the most relevant line.
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
		e.Reason += "; output: " + stderr.ErrorLine(lines)
	}
	if cause != "" {
		e.Reason += "; " + cause
	}
	e.Fix = fix
	return e
}

// diagnose returns the missing variables that the child mentions, and the fix. cause is
// "" if its words explain the error.
func (c *stdio) diagnose(words []string) (cause, fix string) {
	fix, explaining := stderr.FindFix(words)
	missing, mentioned := stderr.Variables(words)
	if c.Info().Protocol != "" {
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
		// One large sender must not cost others the connection.
		c.calls.Fail(id, c.srv.newError(ConnectionError, "does not read requests fast enough; retry later", nil))
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
	rawjson.OneLine(frame[:len(frame)-1]) // each line is one message
	send(frame)
	c.checkStall()
}

func (c *stdio) checkStall() {
	unsent := c.out.UnsentBytes()
	if unsent == 0 {
		return
	}
	if unsent > maxUnsent+c.srv.opt.Limits.Frame || c.out.StalledFor() > c.srv.tune.stall {
		c.fail(c.srv.newError(ConnectionError, "the process does not read its stdin", nil))
	}
}

// close stops the child as the stdio transport of MCP requires: it closes stdin, then
// terminates the group, then kills it.
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
	// Other holders of the pipes must not block the loops.
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
