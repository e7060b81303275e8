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

// reopenTerminal is a variable so that tests can have a terminal whose writes take no
// deadline.
var reopenTerminal = reopen

// closeTimeout is how long to wait at the end for a terminal that does not read. It is a variable for tests.
var closeTimeout = time.Second

// keySink takes what a terminal sends.
type keySink interface {
	input(p []byte)           // may wait
	setDropping(on bool)      // on: input must not wait
	terminalLost(cause error) // the terminal is gone
}

var (
	errOver         = errors.New("the screen has ended")
	errInBackground = errors.New("the process is not in front of the terminal")
)

// console is a terminal that is either taken (raw, in the screen's modes, its
// input read) or given back (as it was found).
type console struct {
	in, out *os.File
	w       *os.File // where output goes: out, or the same terminal opened anew
	fd      int      // of in
	keys    keySink
	jobs    *signals
	steady  bool          // see Terminal
	over    chan struct{} // closed when the terminal must not be taken any more

	// lock guards what follows, and writing. A channel, since at the end it
	// is waited for no longer than farewell.
	lock     chan struct{}
	modes    modes
	original *term.State // how the terminal was found
	attached bool
	stop     func() // stops reading
	undo     func() // takes back what prepare did to the output
	dirty    bool   // a program that was ended may have left its own modes behind

	settingsMu sync.Mutex // held while the terminal's settings are put back
	released   bool       // end has put them back; somebody else may use the terminal
}

func openConsole(in, out *os.File, steady bool, keys keySink) (*console, error) {
	c := &console{
		in: in, out: out, fd: int(in.Fd()), keys: keys, steady: steady,
		over: make(chan struct{}), lock: make(chan struct{}, 1),
	}
	found, err := term.GetState(c.fd)
	if err != nil {
		return nil, fmt.Errorf("the screen's input is not a terminal: %w", err)
	}
	if !term.IsTerminal(int(out.Fd())) {
		return nil, errors.New("the screen's output is not a terminal")
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

// enter takes the lock unless end was called; leave gives it back.
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

// size is the terminal's size; 80x24 if it has none.
func (c *console) size() (w, h int) {
	for _, f := range []*os.File{c.out, c.in} {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// attach puts the terminal into raw mode and the screen's modes, and reads its input. It may be called
// again.
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
		return fmt.Errorf("set the terminal: %w", err)
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

// canConfigure reports whether the terminal's settings are ours to change. Others are
// stopped by the kernel for trying; a steady process ignores that.
func (c *console) canConfigure() bool { return !c.steady || isForeground(c.fd) }

// markDirty notes that a program was ended before it could tidy up.
func (c *console) markDirty() {
	if c.enter() {
		c.dirty = true
		c.leave()
	}
}

// cleanLocked returns the sequences that switch off whatever a program may have left on,
// once.
func (c *console) cleanLocked() string {
	if !c.dirty {
		return ""
	}
	c.dirty = false
	return resetSequences
}

// detach restores the terminal's settings and discards unread input. It does nothing if the terminal is not
// attached.
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

// shutdown gives the terminal back for good, in bounded time even if it does not
// take output any more. What still waits for that then writes at most.
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
	case <-time.After(2 * closeTimeout): // hangs in a write that takes no deadline
		c.settingsMu.Lock()
		defer c.settingsMu.Unlock()
		c.released = true
		if c.canConfigure() {
			flushInput(c.in)
			_ = term.Restore(c.fd, c.original)
		}
	}
}

// Write shows output; it is dropped, but for its modes, while the terminal is
// given back.
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

// ask writes a question to the terminal.
func (c *console) ask(question string) {
	if c.enter() {
		_, _ = c.w.WriteString(question)
		c.leave()
	}
}

// read starts the reader of the terminal; c.stop ends it and waits.
func (c *console) read() error {
	r, err := cancelreader.NewReader(c.in)
	if err != nil {
		return fmt.Errorf("read the terminal: %w", err)
	}
	c.keys.setDropping(false) // before the first key: it may have been typed already
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
		// A reader that cannot be cancelled (a console of Windows that is
		// not the standard input) ends with the next key.
		if r.Cancel() {
			wg.Wait()
		}
		_ = r.Close()
	}
	return nil
}

// restore brings a terminal that is given back into the state it was found in,
// whatever a program left behind.
func (c *console) restore() {
	if c.canConfigure() {
		_ = term.Restore(c.fd, c.original)
	}
}
