package remoteui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// reopenTerminal is a variable for tests of writes without deadline.
var reopenTerminal = reopen

// closeTimeout limits the wait at exit for a terminal that does not read. Tests replace
// it.
var closeTimeout = time.Second

type keySink interface {
	input(p []byte)           // may block
	setDropping(on bool)      // on: input must not block
	terminalLost(cause error) // the terminal was lost
}

var (
	errOver         = errors.New("the UI has exited")
	errInBackground = errors.New("the process is not in the terminal's foreground")
)

// console is a terminal. While attached it is raw, in the UI's modes, and its input is
// read. While detached it has its original settings.
type console struct {
	in, out *os.File
	w       *os.File // output: out, or the same terminal reopened
	fd      int      // of in
	keys    keySink
	jobs    *signals
	steady  bool          // see Terminal
	over    chan struct{} // closed when the terminal must no longer be used

	// lock guards the fields below and writes. It is a channel so that shutdown can stop
	// waiting for it.
	lock     chan struct{}
	modes    modes
	original *term.State // original settings
	attached bool
	stop     func() // stops reading
	undo     func() // reverts prepare
	dirty    bool   // a killed program may have left its modes

	settingsMu sync.Mutex // held while restoring settings
	released   bool       // shutdown restored them; others may use the terminal
}

func openConsole(in, out *os.File, steady bool, keys keySink) (*console, error) {
	c := &console{
		in: in, out: out, fd: int(in.Fd()), keys: keys, steady: steady,
		over: make(chan struct{}), lock: make(chan struct{}, 1),
	}
	found, err := term.GetState(c.fd)
	if err != nil {
		return nil, fmt.Errorf("the UI's input is not a terminal: %w", err)
	}
	if !term.IsTerminal(int(out.Fd())) {
		return nil, errors.New("the UI's output is not a terminal")
	}
	c.original = found
	c.w, c.jobs = reopenTerminal(out), watchSignals(steady)
	return c, nil
}

func (c *console) close() {
	c.jobs.close()
	if c.w != c.out {
		_ = c.w.Close()
		return
	}
	_ = c.w.SetWriteDeadline(time.Time{})
}

// enter takes the lock, unless shutdown was called.
func (c *console) enter() bool {
	select {
	case c.lock <- struct{}{}:
	case <-c.over:
		return false
	}
	select {
	case <-c.over:
		c.leave()
		return false
	default:
		return true
	}
}

func (c *console) leave() { <-c.lock }

func (c *console) size() (w, h int) {
	for _, f := range []*os.File{c.out, c.in} {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// attach sets raw mode and the UI's modes, and starts reading. It may be called again.
func (c *console) attach() error {
	if !c.enter() {
		return errOver
	}
	defer c.leave()
	if !c.canConfigure() {
		c.detachLocked()
		return errInBackground
	}
	if _, err := term.MakeRaw(c.fd); err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	if !c.attached {
		c.undo = prepare(c.out)
		if err := c.read(); err != nil {
			c.undo()
			_ = term.Restore(c.fd, c.original)
			return err
		}
		c.attached = true
	}
	if _, err := c.w.WriteString(c.cleanLocked() + c.modes.enterSequences()); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// canConfigure reports whether this process may change the terminal's settings. In the
// background the kernel would stop it; a steady process ignores that.
func (c *console) canConfigure() bool { return !c.steady || isForeground(c.fd) }

func (c *console) markDirty() {
	if c.enter() {
		c.dirty = true
		c.leave()
	}
}

func (c *console) cleanLocked() string {
	if !c.dirty {
		return ""
	}
	c.dirty = false
	return resetSequences
}

// detach restores the terminal's settings and discards unread input, if attached.
func (c *console) detach() {
	if c.enter() {
		c.detachLocked()
		c.leave()
	}
}

func (c *console) detachLocked() {
	if text := c.cleanLocked(); text != "" {
		_, _ = c.w.WriteString(text)
	}
	if !c.attached {
		return
	}
	c.attached = false
	c.stop()
	_, _ = c.w.WriteString(c.modes.exitSequences())
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	if c.released {
		return
	}
	if c.canConfigure() {
		flushInput(c.in)
		_ = term.Restore(c.fd, c.original)
	}
	c.undo()
}

// shutdown restores the terminal permanently, in limited time even if the terminal does
// not accept output. A pending operation may then still write, but not change settings.
func (c *console) shutdown() {
	close(c.over)
	_ = c.w.SetWriteDeadline(time.Now().Add(closeTimeout))
	given := make(chan struct{})
	go func() {
		defer close(given)
		c.lock <- struct{}{}
		c.detachLocked()
		c.leave()
	}()
	select {
	case <-given:
	case <-time.After(2 * closeTimeout): // blocked in a write without deadline
		c.settingsMu.Lock()
		defer c.settingsMu.Unlock()
		c.released = true
		if c.canConfigure() {
			flushInput(c.in)
			_ = term.Restore(c.fd, c.original)
		}
	}
}

// Write only records the modes while detached.
func (c *console) Write(p []byte) (int, error) {
	if !c.enter() {
		return 0, errOver
	}
	defer c.leave()
	c.modes.scan(p)
	if !c.attached {
		return len(p), nil
	}
	return c.w.Write(p)
}

func (c *console) ask(question string) {
	if c.enter() {
		_, _ = c.w.WriteString(question)
		c.leave()
	}
}

// read starts the reader of the terminal; c.stop stops it and waits.
func (c *console) read() error {
	r, err := cancelreader.NewReader(c.in)
	if err != nil {
		return fmt.Errorf("read the terminal: %w", err)
	}
	c.keys.setDropping(false) // before reading, because keys may be waiting
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				c.keys.input(buf[:n])
			}
			if errors.Is(err, cancelreader.ErrCanceled) {
				return
			}
			if err == nil && n == 0 {
				err = io.EOF
			}
			if err != nil {
				c.keys.terminalLost(err)
				return
			}
		}
	})
	c.stop = func() {
		c.keys.setDropping(true)
		// A reader that cannot be cancelled (a Windows console other than standard input)
		// returns with the next key.
		if r.Cancel() {
			wg.Wait()
		}
		_ = r.Close()
	}
	return nil
}

// restore resets a detached terminal after a program ran.
func (c *console) restore() {
	if c.canConfigure() {
		_ = term.Restore(c.fd, c.original)
	}
}
