package upstream

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
)

// patience limits waits. A wait takes that long only if something is broken.
const patience = 30 * time.Second

// catalog records the updates of a server and passes them to a real registry.
type catalog struct {
	*registry.Registry
	mu      sync.Mutex
	lists   map[registry.Kind][]string // names, nil if never set
	sets    map[registry.Kind]int
	visible []bool
	states  []registry.ServerState
}

func (c *catalog) SetList(server string, k registry.Kind, items [][]byte) []registry.Problem {
	c.mu.Lock()
	names := []string{}
	for _, it := range items {
		names = append(names, string(it))
	}
	c.lists[k] = names
	c.sets[k]++
	c.mu.Unlock()
	return c.Registry.SetList(server, k, items)
}

func (c *catalog) SetVisible(server string, v bool) {
	c.mu.Lock()
	c.visible = append(c.visible, v)
	c.mu.Unlock()
	c.Registry.SetVisible(server, v)
}

func (c *catalog) SetState(server string, st registry.ServerState) {
	c.mu.Lock()
	c.states = append(c.states, st)
	c.mu.Unlock()
	c.Registry.SetState(server, st)
}

func (c *catalog) list(k registry.Kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[k]
}

func (c *catalog) setCount(k registry.Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets[k]
}

func (c *catalog) state() registry.ServerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.states) == 0 {
		return registry.ServerState{}
	}
	return c.states[len(c.states)-1]
}

func (c *catalog) hidden() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.visible) > 0 && !c.visible[len(c.visible)-1]
}

// logged reports whether a line of the journal contains the text.
func (c *catalog) logged(text string) bool {
	for _, rec := range c.Logs().Window(0, -1) {
		if strings.Contains(rec.Text, text) {
			return true
		}
	}
	return false
}

// handler is a Handler that records. request may be set to answer.
type handler struct {
	mu      sync.Mutex
	notes   []string // method and params
	causes  []any
	ready   []string // units
	down    []string
	opened  func(s *Server, conn Conn)
	restore func(ctx context.Context, conn Conn)
	request func(ctx context.Context, c *Call, method string, params []byte) ([]byte, *jsonrpc.Error)
}

func (h *handler) HandleNotification(_ *Server, _ Conn, c *Call, method string, params []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, method+" "+string(params))
	if c != nil {
		h.causes = append(h.causes, c.Cause)
	} else {
		h.causes = append(h.causes, nil)
	}
}

func (h *handler) HandleRequest(ctx context.Context, _ *Server, _ Conn, c *Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	if h.request == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no")
	}
	return h.request(ctx, c, method, params)
}

func (h *handler) ConnOpened(s *Server, conn Conn) {
	if h.opened != nil {
		h.opened(s, conn)
	}
}

func (h *handler) ConnReady(ctx context.Context, _ *Server, conn Conn) {
	h.mu.Lock()
	h.ready = append(h.ready, conn.Unit())
	h.mu.Unlock()
	if h.restore != nil {
		h.restore(ctx, conn)
	}
}

func (h *handler) ConnClosed(_ *Server, conn Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unit := conn.Unit()
	select {
	case <-conn.Done():
	default:
		unit += " before its end"
	}
	h.down = append(h.down, unit)
}

func (h *handler) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = nil
}

func (h *handler) readies() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.ready...)
}

func (h *handler) downs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.down...)
}

func (h *handler) noted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.notes...)
}

type rig struct {
	*Server
	t   *testing.T
	cat *catalog
	h   *handler
	log string
}

// start runs a server until the end of the test. change may modify it before.
func start(t *testing.T, cfg config.Server, change func(*rig)) *rig {
	t.Helper()
	r := newRig(t, cfg, change)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func newRig(t *testing.T, cfg config.Server, change func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, h: &handler{}, log: cfg.Env["FAKE_LOG"], cat: &catalog{
		Registry: registry.New(registry.Options{Servers: []string{cfg.Name}}),
		lists:    map[registry.Kind][]string{}, sets: map[registry.Kind]int{},
	}}
	r.Server = NewServer(cfg, Options{
		Handler: r.h, Registry: r.cat, Version: "test",
		Limits:       config.Limits{Frame: 1 << 20},
		ListChanged:  config.ListChanged{Tools: true, Prompts: true, Resources: true},
		Capabilities: []byte(`{"roots":{"listChanged":true}}`),
	})
	r.tune.discoverTimeout = patience // slow machines need time to start a process
	r.tune.stop = 300 * time.Millisecond
	r.tune.drain = patience         // slow machines need time to stop a process
	r.tune.reconnectWait = patience // slow machines need time to start another
	if change != nil {
		change(r)
	}
	return r
}

func startFake(t *testing.T, mode string, change func(*rig)) *rig {
	t.Helper()
	cfg, _ := fakeConfig(t, mode)
	return start(t, cfg, change)
}

func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	waitFor(r.t, what, cond)
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("timeout waiting for: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// up waits for the first connection.
func (r *rig) up() Conn {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := r.Await(ctx)
	require.NoError(r.t, err)
	return conn
}

// whole waits until the lists are complete.
func (r *rig) whole() *rig {
	r.t.Helper()
	r.up()
	r.until("lists", func() bool { st := r.cat.state(); return st.Listed && !st.Stale })
	return r
}

// call calls a tool with the arguments after its name, if any.
func (r *rig) call(conn Conn, tool string) (string, error) {
	r.t.Helper()
	return do(conn, &Call{Method: "tools/call", Params: toolParams(tool, "")})
}

func toolParams(tool, more string) []byte {
	name, _ := json.Marshal(tool)
	return []byte(`{"name":` + string(name) + more + `}`)
}

func do(conn Conn, c *Call) (string, error) {
	reply, err := conn.Call(c)
	if reply.Error != nil {
		return "error " + string(reply.Error), err
	}
	return string(reply.Result), err
}

// received returns the lines that the test server has read.
func (r *rig) received() string {
	data, _ := os.ReadFile(r.log)
	return string(data)
}

func requireCode(t *testing.T, err error, code, reason string) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, "%v", err)
	require.Equal(t, "files", e.Server)
	require.Contains(t, err.Error(), `server "files"`)
	require.Contains(t, e.Reason, reason)
}
