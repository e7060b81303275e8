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
	ErrConnectionLost = errors.New("the connection to the screen's daemon is lost")
	ErrTerminalLost   = errors.New("the terminal is gone")
)

// Terminal is a terminal that this process owns while it shows a screen.
type Terminal struct {
	In, Out *os.File                 // the same terminal
	Getenv  func(name string) string // nil: os.Getenv
	Theme   string                   // asked for by the user, "" for none
	ASCII   bool                     // the user asked for ASCII only

	// Steady is for a process that must not be stopped, since it does more
	// than show a screen. It stays away from a terminal as long as another job
	// is in front of it, and looks once a second whether that has changed. The
	// process must ignore SIGTTOU, SIGTTIN and SIGTSTP.
	Steady bool
	// OnBackground is called once, from a goroutine of Relay, when a steady screen has to wait for the
	// foreground. It may be nil and must not block.
	OnBackground func()
}

// Rescue notes how a terminal is set. restore sets it so again, never waits,
// and is for a process that must end while a Relay hangs in the terminal. It leaves alone
// what another job has in front.
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

// relay is one call of Relay.
type relay struct {
	con        *console
	send       *sender
	env        func(string) string
	ctx        context.Context
	fail       context.CancelCauseFunc
	links      sync.WaitGroup // what runs as long as the screen
	tasks      sync.WaitGroup // orders under way; the receiver adds them
	busy       atomic.Bool    // an order is under way
	terminalMu sync.Mutex     // held while the terminal belongs to something else

	backgroundCheck chan struct{} // another job may be in front now
	waiting         bool          // for this process to be in front; guarded by terminalMu once watch runs
	warn            func()        // calls OnBackground; nil: done

	content   []byte // of the next order; only the receiver touches it
	contentOf uint64 // that order's id

	parseMu      sync.Mutex // guards what follows, and the order of keys
	parser       replyParser
	imageSupport size // of images, what the terminal answered
	flushAt      time.Time
	flushTimer   *time.Timer   // calls flushHeld then
	answered     chan struct{} // closed with the last answer
}

// endedByDaemon is the cause of an end that the daemon asked for.
type endedByDaemon struct{ reason string }

func (endedByDaemon) Error() string { return "ended by the daemon" }

// Relay shows the screen at the other end of c on t until the daemon ends it (the result is
// its reason, "" for a plain quit), ctx ends (its error), the connection breaks
// ([ErrConnectionLost]) or the terminal is gone ([ErrTerminalLost]). On every way out it
// closes c, ends a pager or editor that it started, and gives the terminal back as it was
// found; a terminal that takes no output is waited for 3 s at most, and where its writes
// cannot be interrupted (only Linux has a way) a goroutine or two stay with it. Programs
// are run with $VISUAL, $EDITOR (or vi) and $PAGER (or less, or more). One screen at a
// time may be on one terminal.
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
	go func() { // may hang in the terminal; see below
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
	case <-time.After(closeTimeout): // hangs in a write that takes no deadline
	}
	r.tasks.Wait()
	r.con.shutdown()
	r.links.Wait()
	return r.result(ctx)
}

// awaitAnswer waits a little for the terminal's answers, which would be typed
// into the shell otherwise.
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

// size is how large the terminal is now, with what is known of it.
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

// input handles bytes of the terminal: keys and replies.
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

// applyReplyLocked handles a reply of the terminal. The caller holds r.parseMu.
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
	if !r.con.canConfigure() { // who is not in front cannot read
		wake(r.backgroundCheck)
		return
	}
	r.fail(fmt.Errorf("%w: %w", ErrTerminalLost, cause))
}

// waitLocked begins to wait for the terminal. The daemon is not asked to pause: the
// modes that it switches on now are needed later.
func (r *relay) waitLocked() {
	r.waiting = true
	if r.warn != nil {
		r.warn()
		r.warn = nil
	}
}

// flushHeld gives out keys that looked like the start of an answer for long
// enough.
func (r *relay) flushHeld() {
	r.parseMu.Lock()
	defer r.parseMu.Unlock()
	if !time.Now().Before(r.flushAt) {
		r.send.put(r.parser.flush(nil))
	}
}

// receive handles the daemon's frames until the connection ends.
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

// addContent adds a piece of content. Content of an order that was given up half-way does not become part of
// the next order's.
func (r *relay) addContent(payload []byte) error {
	if len(payload) < contentHead {
		return errors.New("content without an order")
	}
	id, piece := binary.BigEndian.Uint64(payload), payload[contentHead:]
	if id != r.contentOf {
		r.content, r.contentOf = nil, id
	}
	if len(r.content)+len(piece) > maxContent {
		return fmt.Errorf("content over %d bytes", maxContent)
	}
	r.content = append(r.content, piece...)
	return nil
}

// pollInterval is how often to check whether the terminal exists, and whether a steady screen is in its
// foreground.
const pollInterval = time.Second

// watch follows the terminal's size, the process's stops, and which job is in
// front.
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
			// While a program has the terminal, or another job, nobody reads it
			// who would notice.
			if isGone(r.con.fd) {
				r.fail(fmt.Errorf("%w: it hung up", ErrTerminalLost))
				return
			}
			if r.con.steady && r.isWaiting() && r.con.canConfigure() {
				r.reattach()
			}
		case <-r.backgroundCheck: // its reader has ended
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

// isWaiting reports whether the terminal is waited for, unless that is about to
// change.
func (r *relay) isWaiting() bool {
	if !r.terminalMu.TryLock() {
		return false
	}
	defer r.terminalMu.Unlock()
	return r.waiting
}

// reattach attaches the terminal again unless a pager or an editor uses it.
func (r *relay) reattach() {
	if r.terminalMu.TryLock() {
		r.resumeLocked()
		r.terminalMu.Unlock()
	}
}

// suspend stops the process, with the terminal given back for that time.
func (r *relay) suspend(s *signals) {
	if !r.terminalMu.TryLock() { // a pager or an editor has the terminal
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

// resumeLocked takes the terminal back and asks for a repaint. r.terminalMu is held.
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
