package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/e2e"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a gateway with scripted answers.
type scripted struct {
	t        *testing.T
	isDaemon bool
	status   daemon.Status
	usage    report.Report
	items    map[string][]daemon.Entry // by kind
	listed   func()                    // runs after a list, if not nil
	// answer returns the result or the error of a request. If answer is nil, the gateway
	// never answers and closes silent.
	answer func(s *scripted, method string, params []byte) (result string, err *jsonrpc.Error)

	found func(q daemon.SearchQuery) daemon.SearchAnswer
	ran   func(source string) daemon.ScriptAnswer

	silent   chan struct{}
	conn     net.Conn
	in       *jsonrpc.Reader
	serving  sync.WaitGroup
	mu       sync.Mutex
	opened   [][]string // servers to start, by connection
	closed   int
	requests []string // "method params"
	notes    []string // notifications and answers of the client
}

func (s *scripted) IsDaemon() bool { return s.isDaemon }

func (s *scripted) Close() error {
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *scripted) Status(context.Context) (daemon.Status, error) { return s.status, nil }

func (s *scripted) Servers(context.Context, string) ([]daemon.Server, error) {
	return s.status.Servers, nil
}

func (s *scripted) List(_ context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	items := []daemon.Entry{}
	for _, it := range s.items[q.Kind] {
		if (q.Server == "" || q.Server == it.Server) && (q.MIME == "" || q.MIME == it.MIMEType) {
			items = append(items, it)
		}
	}
	if s.listed != nil {
		s.listed()
	}
	return items, nil
}

func (s *scripted) Search(_ context.Context, q daemon.SearchQuery) (daemon.SearchAnswer, error) {
	return s.found(q), nil
}

func (s *scripted) Script(_ context.Context, q daemon.ScriptQuery) (daemon.ScriptAnswer, error) {
	return s.ran(q.Source), nil
}

func (s *scripted) Unapproved(context.Context, string) ([]registry.UnapprovedTool, error) {
	return nil, nil
}

func (s *scripted) HiddenEntries(context.Context, daemon.HiddenQuery) ([]daemon.HiddenEntry, error) {
	return nil, nil
}

func (s *scripted) Logs(context.Context, daemon.LogQuery) (daemon.LogAnswer, error) {
	return daemon.LogAnswer{}, nil
}

func (s *scripted) Traffic(context.Context, daemon.TrafficQuery) (daemon.TrafficAnswer, error) {
	return daemon.TrafficAnswer{}, nil
}

func (s *scripted) Usage(context.Context) (report.Report, error) { return s.usage, nil }

func (s *scripted) Changes(context.Context, daemon.ChangeQuery) (daemon.ChangeAnswer, error) {
	return daemon.ChangeAnswer{}, nil
}

func (s *scripted) Approve(context.Context, daemon.Approval) ([]string, error) {
	return nil, nil
}

func (s *scripted) CallApprovals(context.Context) ([]registry.CallApproval, error) { return nil, nil }

func (s *scripted) RevokeCallApproval(context.Context, string) error { return nil }

func (s *scripted) ReloadAll(context.Context) error { return nil }

func (s *scripted) Restart(context.Context, string) error { return nil }

func (s *scripted) Diagnose(context.Context, string) (report.Diagnosis, error) {
	return report.Diagnosis{}, nil
}

func (s *scripted) Stop(context.Context) error { return nil }

func (s *scripted) Connect(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.conn, s.in = far, jsonrpc.NewReader(far, 1<<20)
	s.serving.Go(func() {
		defer far.Close()
		for {
			frame, err := s.in.Read()
			if err != nil {
				return
			}
			m, err := jsonrpc.Parse(frame)
			if err != nil {
				s.t.Errorf("the command sent %s: %v", frame, err)
				return
			}
			if !m.IsRequest() {
				s.mu.Lock()
				s.notes = append(s.notes, string(frame))
				s.mu.Unlock()
				continue
			}
			if m.Method == "initialize" {
				s.send(jsonrpc.ResultFrame(m.ID, []byte(`{"protocolVersion":"2025-11-25"}`)))
				continue
			}
			s.mu.Lock()
			s.requests = append(s.requests, m.Method+" "+string(m.Params))
			s.mu.Unlock()
			if s.answer == nil {
				close(s.silent)
				continue
			}
			if result, err := s.answer(s, m.Method, m.Params); err != nil {
				s.send(err.Frame(m.ID))
			} else {
				s.send(jsonrpc.ResultFrame(m.ID, []byte(result)))
			}
		}
	})
	return near, nil
}

// send ignores errors, because commands may close the connection.
func (s *scripted) send(frame []byte) { _, _ = s.conn.Write(frame) }

// ask sends a request to the command and waits for its answer.
func (s *scripted) ask(frame string) string {
	s.send([]byte(frame + "\n"))
	got, err := s.in.Read()
	if err != nil {
		s.t.Errorf("no answer to %s: %v", frame, err)
	}
	return string(got)
}

const threeServers = `
servers:
  a: {command: "true"}
  b: {command: "true"}
  a_b: {command: "true"}
  off: {command: "true", disabled: true}
`

// try is a run of a command line.
type try struct {
	config  string // text; empty: threeServers
	gateway *scripted
	tty     bool
	stdin   string
	ctx     context.Context
	env     map[string]string
	choose  SelectFunc
}

type outcome struct {
	out, err string
	code     int
}

func (y try) run(t *testing.T, args ...string) outcome {
	t.Helper()
	if y.config == "" {
		y.config = threeServers
	}
	path := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(path, []byte(y.config), 0o600))
	return y.runIn(t, path, args...)
}

// runIn is run with the path of a config that may not exist.
func (y try) runIn(t *testing.T, path string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	if y.env == nil {
		y.env = map[string]string{}
	}
	if y.env["XDG_RUNTIME_DIR"] == "" {
		y.env["XDG_RUNTIME_DIR"] = e2e.ShortDir(t)
	}
	a := &App{App: &cli.App{
		In: strings.NewReader(y.stdin), Out: &out, Err: &errs, InTTY: y.choose != nil, OutTTY: y.tty, ErrTTY: y.tty,
		Getenv:     func(k string) string { return y.env[k] },
		Version:    cli.Version{Version: "test", Go: "go1"},
		ConfigFlag: path,
	}}
	a.Choose, a.program = y.choose, "/opt/goblin"
	if y.tty {
		a.Columns = 80
	}
	if g := y.gateway; g != nil {
		g.t = t
		a.Open = func(_ context.Context, _ *App, _ *config.Config, only []string) (Gateway, error) {
			g.opened = append(g.opened, only)
			return g, nil
		}
	}
	root := &cobra.Command{Use: "goblin", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddGroup(cli.Groups()...)
	root.AddCommand(a.Commands()...)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	ctx := y.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	code := a.Report(root.ExecuteContext(ctx))
	if g := y.gateway; g != nil {
		require.Equal(t, len(g.opened), g.closed, "every gateway is closed")
	}
	return outcome{out.String(), errs.String(), code}
}

func fails(code int, message, data string) func(*scripted, string, []byte) (string, *jsonrpc.Error) {
	return func(*scripted, string, []byte) (string, *jsonrpc.Error) {
		err := &jsonrpc.Error{Code: code, Message: message}
		if data != "" {
			err.Data = []byte(data)
		}
		return "", err
	}
}

func gives(result string) func(*scripted, string, []byte) (string, *jsonrpc.Error) {
	return func(*scripted, string, []byte) (string, *jsonrpc.Error) {
		return strings.ReplaceAll(result, "\n", " "), nil
	}
}

func ready(names ...string) daemon.Status {
	var s daemon.Status
	for _, n := range names {
		s.Servers = append(s.Servers, daemon.Server{Name: n, State: "ready", Transport: "stdio", Listed: true})
	}
	return s
}

func size64(n int64) *int64 { return &n }

func decodeJSON(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// slow is a gateway whose lists wait for an event.
type slow struct {
	*scripted
	until <-chan struct{}
	began func()
}

func (s *slow) List(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	if s.began != nil {
		s.began()
	}
	select {
	case <-s.until:
	case <-ctx.Done(): // what is available then
	}
	return s.scripted.List(ctx, q)
}

// signalled is a buffer that signals its first write.
type signalled struct {
	bytes.Buffer
	once  sync.Once
	wrote chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	defer s.once.Do(func() { close(s.wrote) })
	return s.Buffer.Write(p)
}

// runApp is try.run for cases that try has no field for.
func runApp(t *testing.T, ctx context.Context, a *App, g Gateway, args ...string) int {
	t.Helper()
	a.Getenv = func(k string) string { return map[string]string{"XDG_CONFIG_HOME": t.TempDir()}[k] }
	a.Open = func(context.Context, *App, *config.Config, []string) (Gateway, error) { return g, nil }
	root := &cobra.Command{Use: "goblin", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddGroup(cli.Groups()...)
	root.AddCommand(a.Commands()...)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	return a.Report(root.ExecuteContext(ctx))
}
