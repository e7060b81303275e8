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
	"goblin/registry/rule"
)

// ShowFunc shows a UI until the user quits or the terminal disconnects (both nil), ctx
// ends or it fails. With owner, the daemon stops together with this UI. A panic closes
// only this UI.
type ShowFunc func(ctx context.Context, h *Daemon, c *remoteui.Conn, owner bool) error

// Process is the state that the modes of one process share. Set its fields before the
// first call.
type Process struct {
	App      *cli.App
	Extend   stack.ExtendFunc // extends each gateway; may be nil
	In, Out  *os.File         // for MCP or a UI
	Err      *os.File         // its file stays blocking
	Show     ShowFunc
	Rules    []*rule.Rule // of the command line, for [Process.Serve] and [Process.Stdio]
	Theme    string       // from the user; "" means the config's
	ASCII    bool         // draw with ASCII only
	mu       sync.Mutex
	restores []func()
	reload   func() // replaces the effect of SIGHUP, unless nil
}

// Signals returns a context that ends with the first termination signal. For SIGTERM the
// cause is [stack.ErrDrain]. The second signal exits at once, and the kernel or closed
// input stops the children. SIGHUP reloads a daemon's config, unless a lost terminal
// caused it. Under nohup it always reloads and never stops the process. release restores
// signals, streams and terminals.
func (p *Process) Signals() (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	// Without this, a closed pipe would kill the process. Now the write fails.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	caught := make(chan os.Signal, 2)
	stays := signal.Ignored(syscall.SIGHUP) // set by nohup
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
				if sig == syscall.SIGTERM { // another process may replace this one
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

// onTerminal reports whether there is a controlling terminal. After a hangup there is
// none.
func onTerminal() bool {
	tty, err := os.OpenFile(Controlling, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = tty.Close() // nothing was written
	return true
}

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

func (p *Process) undo(undo ...func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restores = append(p.restores, undo...)
}

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

// Streams returns stdin and stdout for MCP, non-blocking if possible.
func (p *Process) Streams() (io.Reader, io.Writer) {
	in, undoIn := cli.SetNonblock(p.In, p.Err)
	out, undoOut := cli.SetNonblock(p.Out, p.Err)
	p.undo(undoOut, undoIn)
	return in, out
}

const handover = time.Second

// holdTerminal ensures that an immediate exit restores t. Such an exit cancels shown,
// waits up to handover for release, and then resets t itself. Until release, SIGQUIT does
// this too before it dumps.
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
		p.mu.Lock()   // an exit in progress keeps the lock
		p.mu.Unlock() //nolint:staticcheck // nothing to do in between
		watching.Wait()
		end()
	}
}

// dump exits like the default SIGQUIT, with a dump. It does not return.
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
