//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a TCP proxy in front of an HTTP server that fails like a network: after
// Vanish, Goblin gets neither an end nor a reset.
type Proxy struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	gone  bool
	pipes map[*pipe]bool
}

// pipe is one connection through a proxy.
type pipe struct {
	near, far net.Conn
	dead      atomic.Bool // forwards nothing any longer
}

// NewProxy listens in front of the address target.
func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{target: target, ln: ln, pipes: map[*pipe]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.each(func(c *pipe) { c.close() })
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) Addr() string { return p.ln.Addr().String() }

func (p *Proxy) accept() {
	for {
		near, err := p.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		c := &pipe{near: near, far: far}
		p.mu.Lock()
		c.dead.Store(p.gone)
		p.pipes[c] = true
		p.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { c.copy(far, near) })
		both.Go(func() { c.copy(near, far) })
		p.wg.Go(func() {
			both.Wait()
			p.mu.Lock()
			delete(p.pipes, c)
			p.mu.Unlock()
		})
	}
}

// copy forwards data and the end of the stream, unless the pipe is dead.
func (c *pipe) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !c.dead.Load() {
			if n > 0 {
				_, _ = to.Write(buf[:n]) // the reader notices errors
			}
			if err != nil {
				c.close()
			}
		} else if from == c.near && err != nil {
			c.close() // Goblin closed it
		}
		if err != nil {
			return
		}
	}
}

func (c *pipe) close() {
	_ = c.near.Close()
	_ = c.far.Close()
}

func (p *Proxy) each(f func(*pipe)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pipes {
		f(c)
	}
}

// Vanish makes the peer silent on all existing and new connections.
func (p *Proxy) Vanish() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.each(func(c *pipe) { c.dead.Store(true) })
}

// Appear lets new connections through again. Old ones stay silent.
func (p *Proxy) Appear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = false
}

// Reset closes all connections.
func (p *Proxy) Reset() { p.each(func(c *pipe) { c.close() }) }
