package remoteui

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrDisconnected says that the relay of a Conn is gone, or the Conn was closed.
var ErrDisconnected = errors.New("the screen's terminal is gone")

const (
	helloWait = 5 * time.Second
	writeWait = 15 * time.Second
	exitWait  = time.Second
)

// environment lists the variables of its relay that a screen gets.
var environment = []string{
	"CLICOLOR", "CLICOLOR_FORCE", "COLORFGBG", "COLORTERM", "LANG", "LC_ALL",
	"LC_CTYPE", "LC_TERMINAL", "NO_COLOR", "SSH_TTY", "TERM", "TERM_PROGRAM", "TMUX",
}

// Conn is the daemon's end of a screen.
type Conn struct {
	c     net.Conn
	br    *bufio.Reader
	hello hello
	keys  *queue

	size    atomic.Pointer[size]
	dark    atomic.Pointer[bool]
	resized chan struct{}
	grounds chan struct{}
	paused  atomic.Bool // the relay's process is stopped: nobody would read

	writing sync.Mutex
	frame   []byte        // the frame being written; guarded by writing
	wait    time.Duration // guarded by writing

	limiting sync.Mutex // guards exitBy, and deadlines of writes with it
	exitBy   time.Time  // when the last write must be done; zero before Exit

	orders  chan struct{} // held by the one order under way
	lastID  uint64        // guarded by orders
	answers chan answer

	gone   chan struct{} // closed with the connection
	goOnce sync.Once
	ended  chan struct{} // closed when the reader has returned
}

// Accept reads a relay's hello from r, which gives what was read ahead of c
// and then c, and owns c from then on. It waits 5 s for the hello. On an error
// c is closed.
func Accept(c net.Conn, r io.Reader) (*Conn, error) {
	s := &Conn{
		c: c, br: bufio.NewReader(r), keys: newQueue(), wait: writeWait,
		resized: make(chan struct{}, 1), grounds: make(chan struct{}, 1),
		orders: make(chan struct{}, 1), answers: make(chan answer, 1),
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := s.greet(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("accept a screen: %w", err)
	}
	go s.receive()
	return s, nil
}

func (s *Conn) greet() error {
	if err := s.c.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	kind, payload, err := readFrame(s.br, nil)
	if err != nil {
		return err
	}
	if kind != frameHello {
		return fmt.Errorf("a hello was expected, not a frame %q", kind)
	}
	if err := json.Unmarshal(payload, &s.hello); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	s.size.Store(&s.hello.size)
	s.dark.Store(s.hello.Dark)
	maps.DeleteFunc(s.hello.Env, func(name, value string) bool {
		return !slices.Contains(environment, name) || strings.ContainsRune(value, 0)
	})
	return s.c.SetReadDeadline(time.Time{})
}

// receive is the reader; it ends with the connection.
func (s *Conn) receive() {
	defer close(s.ended)
	defer s.hangUp()
	var buf []byte
	for {
		kind, payload, err := readFrame(s.br, buf)
		if err != nil || !s.take(kind, payload) {
			return
		}
		if cap(payload) > cap(buf) {
			buf = payload
		}
	}
}

// take handles one frame; false ends the connection.
func (s *Conn) take(kind byte, payload []byte) bool {
	switch kind {
	case frameInput:
		return s.keys.put(payload)
	case frameSize:
		var to size
		if json.Unmarshal(payload, &to) != nil {
			return false
		}
		s.size.Store(&to)
		s.paused.Store(false)
		wake(s.resized)
	case framePause:
		s.paused.Store(true)
	case frameBackground:
		if len(payload) != 1 {
			return false
		}
		dark := payload[0] != 0
		s.dark.Store(&dark)
		wake(s.grounds)
	case frameDone:
		var a answer
		if json.Unmarshal(payload, &a) != nil {
			return false
		}
		select {
		case <-s.answers: // of an order that nobody waits for any more
		default:
		}
		s.answers <- a
	default:
		return false
	}
	return true
}

// wake leaves one value in a channel of capacity one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// hangUp ends the connection without waiting for the reader.
func (s *Conn) hangUp() {
	s.goOnce.Do(func() {
		_ = s.c.Close()
		close(s.gone)
		s.keys.close()
	})
}

// Read gives keys: at most what one read of the terminal gave, waiting for
// some. After the relay is gone it gives what is left, then io.EOF.
func (s *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, ok := s.keys.read(p)
	if !ok {
		return 0, io.EOF
	}
	return n, nil
}

// Write shows p. It sends one frame (more only above 8 MiB) and waits until
// the connection has taken it, at most the write limit (15 s): then it closes
// the connection, since part of a frame may be out. While the relay's process
// is stopped, output is dropped; a value of Resized follows.
func (s *Conn) Write(p []byte) (int, error) {
	for sent := 0; ; {
		piece := p[sent:min(len(p), sent+maxOutput)]
		if s.paused.Load() {
			return len(p), nil
		}
		if err := s.send(frameOutput, piece); err != nil {
			return sent, err
		}
		if sent += len(piece); sent == len(p) {
			return sent, nil
		}
	}
}

// SetWriteLimit sets how long one frame may take to be written.
func (s *Conn) SetWriteLimit(d time.Duration) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.wait = d
}

func (s *Conn) send(kind byte, payload []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.exiting() {
		return ErrDisconnected
	}
	return s.sendLocked(kind, payload, s.wait)
}

// exiting reports whether Exit was called.
func (s *Conn) exiting() bool {
	s.limiting.Lock()
	defer s.limiting.Unlock()
	return !s.exitBy.IsZero()
}

// allow gives the next write its time, and nothing beyond what an Exit has.
func (s *Conn) allow(wait time.Duration) {
	s.limiting.Lock()
	defer s.limiting.Unlock()
	by := time.Now().Add(wait)
	if !s.exitBy.IsZero() {
		by = s.exitBy
	}
	_ = s.c.SetWriteDeadline(by) // a closed one fails to write, too
}

// exit gives all writes from now on, and the one under way, a second together.
func (s *Conn) exit() {
	s.limiting.Lock()
	defer s.limiting.Unlock()
	if s.exitBy.IsZero() {
		s.exitBy = time.Now().Add(exitWait)
		_ = s.c.SetWriteDeadline(s.exitBy)
	}
}

func (s *Conn) sendLocked(kind byte, payload []byte, wait time.Duration) error {
	select {
	case <-s.gone:
		return ErrDisconnected
	default:
	}
	s.frame = appendFrame(s.frame[:0], kind, payload)
	var err error
	for rest := s.frame; len(rest) > 0; {
		s.allow(wait)
		var n int
		n, err = s.c.Write(rest)
		rest = rest[n:]
		// A relay that was stopped meanwhile takes the rest when it goes on.
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || !s.paused.Load() || s.exiting()) {
			break
		}
	}
	if cap(s.frame) > maxControl {
		s.frame = nil // a rare large one is not kept
	}
	if err != nil {
		s.hangUp()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the terminal did not take a screen within %v: %w", wait, err)
		}
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// Env is the relay's environment as far as screens care, as KEY=VALUE, sorted.
func (s *Conn) Env() []string {
	env := make([]string, 0, len(s.hello.Env))
	for name, value := range s.hello.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Getenv is a variable of Env, "" if it is not there.
func (s *Conn) Getenv(name string) string { return s.hello.Env[name] }

// Terminal returns the terminal's own name, for people: foreign text.
func (s *Conn) Terminal() string {
	name := cmp.Or(s.Getenv("TERM_PROGRAM"), s.Getenv("TERM"), "terminal")
	if s.Getenv("SSH_TTY") != "" {
		name += " over SSH"
	}
	return name
}

// Size is the terminal's latest size in cells, each side 1 to 1000 and both
// together 250,000 at most; of a larger terminal the lower part is not used.
func (s *Conn) Size() (w, h int) {
	at := s.size.Load()
	w = min(max(at.Width, 1), maxSide)
	return w, min(max(at.Height, 1), maxSide, maxCells/w)
}

// Graphics returns the terminal's answers about images, as far as they came: whether it
// has kitty's protocol and sixel, and the pixels of a cell, 0 if they are not known.
func (s *Conn) Graphics() (kitty, sixel bool, cellWidth, cellHeight int) {
	at := s.size.Load()
	w, h := at.CellWidth, at.CellHeight
	if w < 1 || h < 1 || w > mostCell || h > mostCell {
		w, h = 0, 0
	}
	return at.Kitty, at.Sixel, w, h
}

// Resized has a value after the size or Graphics changed or the terminal came back from
// something else. Values that nobody took merge; each asks for a full repaint.
func (s *Conn) Resized() <-chan struct{} { return s.resized }

// Dark reports whether the terminal's background is dark, once that is known.
func (s *Conn) Dark() (dark, known bool) {
	if p := s.dark.Load(); p != nil {
		return *p, true
	}
	return false, false
}

// Backgrounds has a value after Dark changed its answer; values merge.
func (s *Conn) Backgrounds() <-chan struct{} { return s.grounds }

// Theme is the theme that the relay's user asked for, "" for none.
func (s *Conn) Theme() string { return s.hello.Theme }

// ASCII says that the relay's user asked for characters of ASCII only.
func (s *Conn) ASCII() bool { return s.hello.ASCII }

// Done is closed when the relay is gone or the Conn was closed.
func (s *Conn) Done() <-chan struct{} { return s.gone }

// Exit tells the relay to end, with a reason for its user ("" for a plain
// quit), and closes. It waits a second at most for a relay that does not read,
// and ends a Write that does. Of several calls the first one's reason counts.
func (s *Conn) Exit(reason string) error {
	s.exit()
	s.writing.Lock()
	err := s.sendLocked(frameExit, []byte(reason[:min(len(reason), maxControl)]), exitWait)
	s.writing.Unlock()
	return errors.Join(err, s.Close())
}

// Close ends the connection and waits for the reader. It may be called again.
func (s *Conn) Close() error {
	s.hangUp()
	<-s.ended
	return nil
}
