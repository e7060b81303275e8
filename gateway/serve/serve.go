package serve

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/cli"
	"goblin/gateway/remoteui"
	"goblin/gateway/stack"
)

// ShowFunc shows one screen of a daemon on a connection to the terminal until
// its user quits (nil), the terminal is gone (nil), ctx ends or it fails. owner
// says that the daemon ends with this screen. It may panic: that screen ends.
type ShowFunc func(ctx context.Context, h *Daemon, c *remoteui.Conn, owner bool) error

// Process holds the state that the modes of one process share. Set the fields before the
// first call.
type Process struct {
	App      *cli.App
	Extend   stack.ExtendFunc // adds to each gateway; may be nil
	In, Out  *os.File         // what MCP or a screen uses
	Err      *os.File         // what of that must not be made non-blocking
	Show     ShowFunc
	Theme    string // that the user asked for; "" for the config's
	ASCII    bool   // draw with ASCII only
	mu       sync.Mutex
	restores []func() // undo what was done to streams and terminals
	reload   func()   // what SIGHUP does instead of ending the process; nil: that
}

// Signals gives the context that ends with the first signal to end; if that is
// SIGTERM, with [stack.ErrDrain] as its cause. The second signal ends the process
// at once; the kernel or their closed input ends its children. A SIGHUP that no lost
// terminal sent makes a daemon read its config again instead; under nohup each does, and
// ends no process. release gives back signals, streams and terminals.
func (p *Process) Signals() (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	// A reader that left shows as an error of the write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	caught := make(chan os.Signal, 2)
	stays := signal.Ignored(syscall.SIGHUP) // as nohup sets it
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	attached := onTerminal()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			select {
			case sig := <-caught:
				if sig == syscall.SIGHUP && (stays || onTerminal() == attached) {
					if reload := p.reloader(); reload != nil {
						reload()
						continue
					}
					if stays {
						continue
					}
				}
				if ctx.Err() != nil {
					p.restore()
					childproc.KillAll()
					os.Exit(cli.CodeFailure)
				}
				if sig == syscall.SIGTERM { // another process may take over
					cancel(stack.ErrDrain)
				}
				cancel(nil)
			case <-done:
				return
			}
		}
	})
	return ctx, func() {
		p.restore()
		signal.Stop(caught)
		close(done)
		waiting.Wait()
		cancel(nil)
	}
}

// onTerminal reports whether there is a terminal that the process belongs to:
// none any more when that hung up.
func onTerminal() bool {
	tty, err := os.OpenFile(Controlling, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = tty.Close() // nothing was written
	return true
}

// onHangup makes reload the meaning of SIGHUP.
func (p *Process) onHangup(reload func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reload = reload
}

func (p *Process) reloader() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reload
}

// undo adds what restore has to do.
func (p *Process) undo(undo ...func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restores = append(p.restores, undo...)
}

// restore undoes what was done to streams and terminals.
func (p *Process) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restoreLocked()
}

func (p *Process) restoreLocked() {
	for _, undo := range p.restores {
		undo()
	}
	p.restores = nil
}

// Streams are stdin and stdout for MCP, in non-blocking mode where that works.
func (p *Process) Streams() (io.Reader, io.Writer) {
	in, undoIn := cli.SetNonblock(p.In, p.Err)
	out, undoOut := cli.SetNonblock(p.Out, p.Err)
	p.undo(undoOut, undoIn)
	return in, out
}

// handover is how long the end of a process waits for its terminal.
const handover = time.Second

// holdTerminal makes whoever ends the process at once end shown first, in which t is
// used, and wait a moment until t is given back; then it sets t as it was found.
// release tells that it is given back. Meanwhile SIGQUIT, which otherwise ends
// a Go program with a dump on the spot, does so, too.
func (p *Process) holdTerminal(ctx context.Context, t remoteui.Terminal) (shown context.Context, release func()) {
	shown, end := context.WithCancel(ctx)
	given := make(chan struct{})
	rescue := t.Rescue()
	p.undo(func() {
		end()
		select {
		case <-given:
		case <-time.After(handover):
			rescue()
		}
	})
	quit := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGQUIT) {
		signal.Notify(quit, syscall.SIGQUIT)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-quit:
			p.dump()
		case <-given:
		}
	})
	return shown, func() {
		close(given)
		signal.Stop(quit)
		p.mu.Lock()   // whoever ends the process does not let go of it
		p.mu.Unlock() //nolint:staticcheck // nothing is to be done in between
		watching.Wait()
		end()
	}
}

// dump ends the process the way SIGQUIT does by default. It does not return.
func (p *Process) dump() {
	p.mu.Lock()
	p.restoreLocked()
	signal.Reset(syscall.SIGQUIT)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGQUIT)
	}
	if err != nil {
		os.Exit(cli.CodeFailure)
	}
	select {}
}
