package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/uicontext"
)

// The clocks of tests are in UTC, but UIs show local times.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

// pipeTerminal is a terminal whose keys a test types and whose output it waits
// for.
type pipeTerminal struct {
	*fakeTerminal
	in      *io.PipeReader
	keys    *io.PipeWriter
	done    chan struct{}
	resized chan struct{}

	mu     sync.Mutex
	out    bytes.Buffer
	wrote  chan struct{} // capacity 1
	frozen chan struct{} // if not nil, Write waits for it
}

func newPipeTerminal(t testing.TB, w, h int) *pipeTerminal {
	p := &pipeTerminal{
		fakeTerminal: &fakeTerminal{w: w, h: h, env: plainEnv, saved: map[string]string{}, never: make(chan struct{})},
		done:         make(chan struct{}), resized: make(chan struct{}, 1), wrote: make(chan struct{}, 1),
	}
	p.in, p.keys = io.Pipe()
	t.Cleanup(func() { p.keys.Close() })
	return p
}

func (p *pipeTerminal) Read(b []byte) (int, error)   { return p.in.Read(b) }
func (p *pipeTerminal) Done() <-chan struct{}        { return p.done }
func (p *pipeTerminal) Resized() <-chan struct{}     { return p.resized }
func (p *pipeTerminal) Backgrounds() <-chan struct{} { return nil }

func (p *pipeTerminal) Write(b []byte) (int, error) {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(b)
	select {
	case p.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

// await waits until a text was drawn.
func (p *pipeTerminal) await(t testing.TB, text string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		p.mu.Lock()
		found := strings.Contains(p.out.String(), text)
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-p.wrote:
		case <-limit:
			t.Fatalf("never drawn: %q in %q", text, p.out.String())
		}
	}
}

func (p *pipeTerminal) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
}

// startUI runs a UI with its program and terminal.
func startUI(t *testing.T, b uicontext.Backend, log *slog.Logger) (*registry.Registry, *Screen, *pipeTerminal, <-chan error) {
	t.Helper()
	reg := registry.New(registry.Options{Servers: []string{"files"}})
	reg.SetState("files", registry.ServerState{State: registry.StateReady})
	reg.SetList("files", registry.Resource, [][]byte{[]byte(`{"uri":"file:///one","name":"one"}`)})
	s := New(Options{Registry: reg, Logger: log, Daemon: Daemon{Owner: true}})
	term := newPipeTerminal(t, 120, 30)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		ended <- s.Run(ctx, b, term)
	}()
	t.Cleanup(func() {
		term.keys.Close()
		cancel()
		<-gone
	})
	return reg, s, term, ended
}

func newBackend() *fakeBackend {
	return &fakeBackend{lacks: map[string]string{}, answers: map[string]func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error){}}
}

func TestScreenIsAliveAndQuits(t *testing.T) {
	t.Parallel()
	reg, _, term, ended := startUI(t, newBackend(), nil)
	term.await(t, "file:///one")
	reg.SetList("files", registry.Resource, [][]byte{[]byte(`{"uri":"file:///two","name":"two"}`)})
	term.await(t, "file:///two")
	term.keys.Write([]byte("q"))
	require.NoError(t, <-ended)
	term.await(t, "\x1b[?1049l")
}

func TestResizeRepaintsEverything(t *testing.T) {
	t.Parallel()
	_, _, term, _ := startUI(t, newBackend(), nil)
	term.await(t, "file:///one")
	term.forget()
	term.resized <- struct{}{} // the same size: another program used the terminal
	term.await(t, "file:///one")
	term.await(t, "[4 Resources")
}

func TestScreenEndsWithItsTerminalOrItsDaemon(t *testing.T) {
	t.Parallel()
	_, _, term, ended := startUI(t, newBackend(), nil)
	term.await(t, "file:///one")
	close(term.done)
	require.NoError(t, <-ended)
}

// panickingBackend panics while a frame is drawn.
type panickingBackend struct {
	*fakeBackend
	mu  sync.Mutex
	now bool
}

func (p *panickingBackend) Session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now {
		panic("boom")
	}
	return "me"
}

func TestAPanicEndsItsScreenWithAnErrorOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var mu sync.Mutex
	b := &panickingBackend{fakeBackend: newBackend()}
	reg, s, term, ended := startUI(t, b, slog.New(slog.NewTextHandler(&lockedWriter{w: &log, mu: &mu}, nil)))
	term.await(t, "file:///one")
	b.mu.Lock()
	b.now = true
	b.mu.Unlock()
	reg.SetState("files", registry.ServerState{State: registry.StateRetrying})
	err := <-ended
	require.ErrorContains(t, err, "boom")
	mu.Lock()
	require.Contains(t, log.String(), "UI failed")
	mu.Unlock()
	_, err = s.Ask(context.Background(), "elicitation/create", nil)
	require.ErrorIs(t, err, dialog.ErrScreenClosed, "the request must get an error")
	reg.SetState("files", registry.ServerState{State: registry.StateReady}) // the rest survives
}

type lockedWriter struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestAPanicInACommandEndsItsScreenWithAnErrorOnly(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.answers["resources/read"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) { panic("boom") }
	_, _, term, ended := startUI(t, b, nil)
	term.await(t, "file:///one")
	term.keys.Write([]byte("\r"))
	require.ErrorContains(t, <-ended, "boom")
}

// A terminal that does not read stops only its own UI. Changes of the catalog, requests
// to the user and progress continue at once.
func TestATerminalThatStopsReadingBlocksNobody(t *testing.T) {
	t.Parallel()
	b := newBackend()
	answered := make(chan struct{})
	b.answers["resources/read"] = func(_ json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		for range 10_000 {
			progress(json.RawMessage(`{"progress":1}`))
		}
		close(answered)
		return nil, errors.New("done")
	}
	reg, s, term, _ := startUI(t, b, nil)
	term.await(t, "file:///one")
	frozen := make(chan struct{})
	thaw := sync.OnceFunc(func() { close(frozen) })
	defer thaw()
	term.mu.Lock()
	term.frozen = frozen
	term.mu.Unlock()
	term.keys.Write([]byte("\r"))
	<-answered
	for i := range 10_000 {
		reg.SetState("files", registry.ServerState{State: registry.StateReady, Restarts: i})
	}
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan error, 1)
	go func() {
		_, err := s.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"Now?","requestedSchema":{"type":"object","properties":{}}}`))
		asked <- err
	}()
	cancel()
	require.ErrorIs(t, <-asked, context.Canceled)
	thaw()
	term.mu.Lock()
	term.frozen = nil
	term.mu.Unlock()
	term.await(t, "file:///one")
}

func TestTwoScreensAreTheirOwn(t *testing.T) {
	t.Parallel()
	reg := registry.New(registry.Options{Servers: []string{"files"}})
	reg.SetState("files", registry.ServerState{State: registry.StateReady})
	reg.SetList("files", registry.Resource, [][]byte{[]byte(`{"uri":"file:///one","name":"one"}`), []byte(`{"uri":"file:///two","name":"two"}`)})
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	var terms []*pipeTerminal
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		term := newPipeTerminal(t, size[0], size[1])
		terms = append(terms, term)
		all.Go(func() { _ = New(Options{Registry: reg}).Run(ctx, newBackend(), term) })
	}
	t.Cleanup(func() {
		cancel()
		for _, term := range terms {
			term.keys.Close()
		}
		all.Wait()
	})
	for _, term := range terms {
		term.await(t, "file:///two")
	}
	terms[0].keys.Write([]byte("/one\r"))
	terms[0].await(t, "1 of 2")
	terms[1].forget()
	reg.SetList("files", registry.Resource, [][]byte{[]byte(`{"uri":"file:///one","name":"one"}`), []byte(`{"uri":"file:///two","name":"two"}`), []byte(`{"uri":"file:///three","name":"three"}`)})
	terms[1].await(t, "file:///three")
	terms[0].await(t, "1 of 3")
	terms[0].keys.Write([]byte("q"))
	terms[0].await(t, "\x1b[?1049l")
	terms[1].forget()
	reg.SetList("files", registry.Resource, [][]byte{[]byte(`{"uri":"file:///four","name":"four"}`)})
	terms[1].await(t, "file:///four")
}
