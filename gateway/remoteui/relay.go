package remoteui

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Errors of Relay.
var (
	ErrConnectionLost = errors.New("the connection to the daemon is lost")
	ErrTerminalLost   = errors.New("the terminal was closed")
)

// Terminal is a terminal that this process owns while it shows a UI.
type Terminal struct {
	In, Out *os.File                 // the same terminal
	Getenv  func(name string) string // nil: os.Getenv
	Theme   string                   // requested by the user, or ""
	ASCII   bool                     // the user requested ASCII output

	// Steady is for a process that must not be stopped, because it does more than show a
	// UI. While another job is in the foreground, it does not use the terminal, and
	// checks once a second. The process must ignore SIGTTOU, SIGTTIN and SIGTSTP.
	Steady bool
	// OnBackground is called once, from a goroutine of Relay, when a steady UI must wait
	// for the foreground. It may be nil and must not block.
	OnBackground func()
}

// Rescue returns a function that restores the current settings of the terminal without
// blocking. It is for a process that must exit while a Relay is blocked by the terminal.
// It does nothing while another job is in the foreground.
func (t Terminal) Rescue() (restore func()) {
	fd := int(t.In.Fd())
	found, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	return func() {
		if isForeground(fd) {
			_ = term.Restore(fd, found)
		}
	}
}

type relay struct {
	con        *console
	send       *sender
	env        func(string) string
	ctx        context.Context
	fail       context.CancelCauseFunc
	links      sync.WaitGroup // goroutines that run as long as the UI
	tasks      sync.WaitGroup // running orders; added by the receiver
	busy       atomic.Bool    // an order is running
	terminalMu sync.Mutex     // held while a program or another job uses the terminal

	backgroundCheck chan struct{} // another job may be in the foreground
	waiting         bool          // for the foreground; guarded by terminalMu once watch runs
	warn            func()        // calls OnBackground; nil: done

	content   []byte // sent before the order that uses it; only for the receiver
	contentOf uint64 // id of that order

	parseMu      sync.Mutex // guards the fields below, and the order of keys
	parser       replyParser
	imageSupport size // image support reported by the terminal
	flushAt      time.Time
	flushTimer   *time.Timer   // calls flushHeld at flushAt
	answered     chan struct{} // closed with the last reply
}

type endedByDaemon struct{ reason string }

func (endedByDaemon) Error() string { return "closed by the daemon" }

// Relay shows the UI at the other end of c on t until one of these events:
//
//   - the daemon ends it; Relay returns its reason, "" for a plain quit
//   - ctx is done; Relay returns its error
//   - the connection breaks ([ErrConnectionLost])
//   - the terminal is closed ([ErrTerminalLost])
//
// Relay then closes c, stops a pager or editor that it started, and restores the
// terminal. It waits up to 3 s for a terminal that accepts no output. If its writes
// cannot be interrupted, as on all systems except Linux, one or two goroutines remain
// blocked. It runs $VISUAL, $EDITOR (or vi) and $PAGER (or less, or more). A terminal can
// show only one UI at a time.
func Relay(ctx context.Context, c net.Conn, t Terminal) (reason string, err error) {
	defer c.Close()
	if t.Getenv == nil {
		t.Getenv = os.Getenv
	}
	r := &relay{
		send: newSender(), env: t.Getenv, answered: make(chan struct{}),
		backgroundCheck: make(chan struct{}, 1), warn: t.OnBackground,
	}
	r.flushTimer = time.AfterFunc(time.Hour, r.flushHeld)
	defer r.flushTimer.Stop()
	r.ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	r.con, err = openConsole(t.In, t.Out, t.Steady, r)
	if err != nil {
		return "", err
	}
	defer r.con.close()
	r.send.send(jsonFrame(frameHello, r.hello(t)))
	ask := queries(t.Getenv)
	switch err := r.con.attach(); {
	case errors.Is(err, errInBackground):
		ask = ""
		r.waitLocked()
	case err != nil:
		r.con.shutdown()
		return "", err
	}
	r.parseMu.Lock()
	r.parser.expect(ask)
	r.parseMu.Unlock()
	asked := time.Now()
	if ask != "" {
		r.con.ask(ask)
	}

	r.links.Go(func() { r.send.run(c) })
	received := make(chan struct{})
	go func() { // may block in the terminal, see below
		defer close(received)
		r.fail(r.receive(c))
	}()
	r.links.Go(r.watch)
	<-r.ctx.Done()

	if ask != "" && time.Since(asked) < time.Second {
		r.awaitAnswer()
	}
	_ = c.Close()
	r.send.close()
	_ = r.con.w.SetWriteDeadline(time.Now().Add(closeTimeout))
	select {
	case <-received:
	case <-time.After(closeTimeout): // blocked in a write without deadline
	}
	r.tasks.Wait()
	r.con.shutdown()
	r.links.Wait()
	return r.result(ctx)
}

// awaitAnswer waits briefly for replies, which would become input of the shell otherwise.
func (r *relay) awaitAnswer() {
	select {
	case <-r.answered:
	case <-time.After(100 * time.Millisecond):
	}
}

func (r *relay) result(ctx context.Context) (string, error) {
	cause := context.Cause(r.ctx)
	if end := (endedByDaemon{}); errors.As(cause, &end) {
		return end.reason, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", cause
}

func (r *relay) hello(t Terminal) hello {
	env := make(map[string]string)
	for _, name := range environment {
		if v := t.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return hello{r.size(), env, t.Theme, t.ASCII, parseColorFGBG(t.Getenv("COLORFGBG"))}
}

func (r *relay) size() size {
	r.parseMu.Lock()
	defer r.parseMu.Unlock()
	return r.sizeLocked()
}

func (r *relay) sizeLocked() size {
	s := r.imageSupport
	s.Width, s.Height = r.con.size()
	if w, h := cellSize(r.con.out); w > 0 && h > 0 { // changes with the font
		s.CellWidth, s.CellHeight = w, h
	}
	return s
}

func (r *relay) input(p []byte) {
	r.parseMu.Lock()
	defer r.parseMu.Unlock()
	keys, answers := r.parser.extract(nil, p)
	if d := r.parser.flushDelay(); d > 0 {
		r.flushAt = time.Now().Add(d)
		r.flushTimer.Reset(d)
	}
	for _, a := range answers {
		r.applyReplyLocked(a)
	}
	if len(answers) > 0 && r.parser.isIdle() {
		close(r.answered)
	}
	r.send.put(keys)
}

// applyReplyLocked requires r.parseMu.
func (r *relay) applyReplyLocked(a terminalReply) {
	if a.kind == replyBackground {
		if dark, ok := isDark(a.body); ok {
			r.send.background(dark)
		}
		return
	}
	r.imageSupport.applyReply(a)
	if a.kind == replyAttributes && r.imageSupport != (size{}) {
		r.send.resize(r.sizeLocked())
	}
}

func (r *relay) setDropping(on bool) { r.send.setDropping(on) }

func (r *relay) terminalLost(cause error) {
	if !r.con.canConfigure() { // background processes cannot read
		wake(r.backgroundCheck)
		return
	}
	r.fail(fmt.Errorf("%w: %w", ErrTerminalLost, cause))
}

// waitLocked does not pause the daemon, because the modes that the UI sets now are needed
// later.
func (r *relay) waitLocked() {
	r.waiting = true
	if r.warn != nil {
		r.warn()
		r.warn = nil
	}
}

// flushHeld sends pending keys that looked like the start of a reply.
func (r *relay) flushHeld() {
	r.parseMu.Lock()
	defer r.parseMu.Unlock()
	if !time.Now().Before(r.flushAt) {
		r.send.put(r.parser.flush(nil))
	}
}

func (r *relay) receive(c io.Reader) error {
	br := bufio.NewReaderSize(c, 64<<10)
	var buf []byte
	for {
		kind, payload, err := readFrame(br, buf)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConnectionLost, err)
		}
		if cap(payload) > cap(buf) {
			buf = payload
		}
		switch kind {
		case frameOutput:
			if _, err := r.con.Write(payload); err != nil {
				return fmt.Errorf("%w: %w", ErrTerminalLost, err)
			}
		case frameContent:
			if err := r.addContent(payload); err != nil {
				return fmt.Errorf("%w: %w", ErrConnectionLost, err)
			}
		case frameExec, frameSave:
			if err := r.execute(kind, payload); err != nil {
				return fmt.Errorf("%w: %w", ErrConnectionLost, err)
			}
		case frameExit:
			return endedByDaemon{string(payload)}
		default:
			return fmt.Errorf("%w: unknown frame %q", ErrConnectionLost, kind)
		}
	}
}

// addContent drops content of an abandoned order.
func (r *relay) addContent(payload []byte) error {
	if len(payload) < contentHead {
		return errors.New("content without an order")
	}
	id, piece := binary.BigEndian.Uint64(payload), payload[contentHead:]
	if id != r.contentOf {
		r.content, r.contentOf = nil, id
	}
	if len(r.content)+len(piece) > maxContent {
		return fmt.Errorf("content exceeds %d bytes", maxContent)
	}
	r.content = append(r.content, piece...)
	return nil
}

// pollInterval is for checking that the terminal exists, and that a steady UI is in the
// foreground.
const pollInterval = time.Second

func (r *relay) watch() {
	s := r.con.jobs
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	w, h := r.con.size()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-look.C:
			// While a program or another job uses the terminal, no read would detect a
			// closed terminal.
			if isGone(r.con.fd) {
				r.fail(fmt.Errorf("%w: hung up", ErrTerminalLost))
				return
			}
			if r.con.steady && r.isWaiting() && r.con.canConfigure() {
				r.reattach()
			}
		case <-r.backgroundCheck: // its reader has returned
			r.con.detach()
			r.reattach()
		case <-s.resized:
			if nw, nh := r.con.size(); (s.exact || nw != w || nh != h) && !r.isWaiting() {
				w, h = nw, nh
				r.send.resize(r.size())
			}
		case <-s.stopped:
			r.suspend(s)
		case <-s.continued:
			r.reattach()
		}
	}
}

// isWaiting returns false while that is about to change.
func (r *relay) isWaiting() bool {
	if !r.terminalMu.TryLock() {
		return false
	}
	defer r.terminalMu.Unlock()
	return r.waiting
}

// reattach does nothing while a pager or an editor uses the terminal.
func (r *relay) reattach() {
	if r.terminalMu.TryLock() {
		r.resumeLocked()
		r.terminalMu.Unlock()
	}
}

// suspend detaches the terminal and stops the process until it is continued.
func (r *relay) suspend(s *signals) {
	if !r.terminalMu.TryLock() { // a pager or an editor uses the terminal
		s.stop(false)
		return
	}
	defer r.terminalMu.Unlock()
	r.con.detach()
	r.send.send(appendFrame(nil, framePause, nil))
	sent := make(chan struct{})
	r.links.Go(func() { r.send.drain(); close(sent) })
	select {
	case <-sent:
	case <-time.After(200 * time.Millisecond):
	}
	s.stop(false)
	r.resumeLocked()
}

// resumeLocked attaches the terminal and requests a repaint. It requires r.terminalMu.
func (r *relay) resumeLocked() {
	switch err := r.con.attach(); {
	case err == nil:
		r.waiting = false
		r.send.resize(r.size())
	case errors.Is(err, errInBackground):
		if !r.waiting {
			r.waitLocked()
		}
	case !errors.Is(err, errOver):
		r.terminalLost(err)
	}
}
