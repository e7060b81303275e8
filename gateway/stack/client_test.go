package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/registry"
)

// patience limits every wait. A correct program needs a small part of it.
const patience = 30 * time.Second

// actions are the methods of a Client that the UI calls.
type actions interface {
	Request(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
	Restart(server string) error
	SetEnabled(server string, on bool) error
	Session() string
	Close() error
}

var _ actions = (*Client)(nil)

// answered is an error answer as the UI uses it.
type answered interface {
	error
	ErrorCode() int
	ErrorData() json.RawMessage
}

var _ answered = (*jsonrpc.Error)(nil)

// fake is a server of the config with its script.
type fake struct{ name, script, extra string }

// start runs a daemon with fake servers. It returns the files with the messages that each
// server received.
func start(t *testing.T, gateway string, servers ...fake) (*Stack, map[string]string) {
	t.Helper()
	return startWith(t, gateway, func(*Options) {}, servers...)
}

// startWith is start with more options.
func startWith(t *testing.T, gateway string, change func(*Options), servers ...fake) (*Stack, map[string]string) {
	t.Helper()
	e2e.Use()
	dir := t.TempDir()
	logs := map[string]string{}
	text := "gateway: {" + gateway + "}\nservers:\n"
	for _, s := range servers {
		logs[s.name] = filepath.Join(dir, s.name+".log")
		path := filepath.Join(dir, s.name+".json")
		script := fmt.Sprintf(`{"name":%q,"log":%q,%s}`, s.name, logs[s.name], s.script)
		require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
		text += fmt.Sprintf("  %s: {command: %q, args: [%q]%s}\n", s.name, e2e.TestServer, path, s.extra)
	}
	o := Options{Config: parse(t, text), Version: "v", Logger: slog.New(slog.DiscardHandler)}
	change(&o)
	i, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return i, logs
}

func open(t *testing.T, i *Stack, ask mcpclient.AskFunc) *Client {
	t.Helper()
	c, err := i.OpenClient(context.Background(), "screen", ask)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// received waits until a server's log has a line with all the words.
func received(t *testing.T, log string, words ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log)
		if err != nil {
			return false
		}
		for line := range bytes.Lines(text) {
			all := true
			for _, w := range words {
				all = all && bytes.Contains(line, []byte(w))
			}
			if all {
				return true
			}
		}
		return false
	}, patience, 5*time.Millisecond, "%v", words)
}

const tools = `"tools":[{"name":"t","inputSchema":{"type":"object"}}]`

func TestClientIsASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools})
	c := open(t, i, nil)
	result, err := c.Request(within(t), "tools/call", json.RawMessage("{\n \"name\": \"s_t\",\n \"arguments\": {\"a\":1}\n}\n"), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[{"type":"text","text":"s:t:{\"a\":1}"}]}`, string(result))

	status, err := i.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, status.Sessions, 1)
	require.Zero(t, status.Clients(), "a UI is not a client")
	s := status.Sessions[0]
	require.Equal(t, []string{c.Session(), "screen", "screen", "v", "2025-11-25"}, []string{s.ID, s.Transport, s.Client, s.Version, s.Protocol})

	require.NoError(t, c.Close())
	status, err = i.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, status.Sessions)
	_, err = c.Request(within(t), "ping", nil, nil)
	require.ErrorIs(t, err, mcpclient.ErrClosed)
	require.NoError(t, c.Close())
}

func TestClientGetsAnsweredErrorsUnchanged(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"error","error":{"code":-5,"message":"no “way”","data":[1, 2]}}]}`})
	c := open(t, i, nil)
	for _, test := range []struct {
		method, params string
		code           int
		message, data  string
	}{
		{"tools/call", `{"name":"s_t"}`, -5, "no “way”", "[1, 2]"},
		{"odd/method", `{}`, -32601, "Method not found: odd/method", ""},
		{"tools/call", `{"name":`, -32602, "Invalid params: ", ""},
		{"tools/call", `[1]`, -32602, "Invalid params: they must be an object", ""},
	} {
		_, err := c.Request(within(t), test.method, json.RawMessage(test.params), nil)
		var e answered
		require.ErrorAs(t, err, &e, "%s %s", test.method, test.params)
		require.Equal(t, test.code, e.ErrorCode())
		require.True(t, strings.HasPrefix(e.Error(), test.message), e.Error())
		require.Equal(t, test.data, string(e.ErrorData()))
	}
}

func TestARequestUnderWayIsSeenAndCancelledByAnother(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"progress","n":1},{"do":"hang"}]}`})
	asks, looks := open(t, i, nil), open(t, i, nil)
	require.Empty(t, looks.InFlight())
	started := make(chan struct{})
	got := make(chan error, 1)
	go func() {
		_, err := asks.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t","arguments":{"x":1}}`), func(json.RawMessage) { close(started) })
		got <- err
	}()
	<-started
	all := looks.InFlight()
	require.Len(t, all, 1)
	u := all[0]
	require.Equal(t, []string{asks.Session(), "screen", "s", "tools/call", "s_t", registry.StatusInFlight}, []string{u.Session, u.Client, u.Server, u.Method, u.Name, u.Status})
	require.Contains(t, string(u.Request), `"x":1`)
	require.False(t, u.Time.IsZero())
	require.False(t, looks.CancelRequest(u.Session, "nothing like it"))
	require.False(t, looks.CancelRequest("nobody", u.ID))
	require.True(t, looks.CancelRequest(u.Session, u.ID))
	require.ErrorContains(t, <-got, "cancelled by the user")
	received(t, logs["s"], "notifications/cancelled", "cancelled by the user")
	require.Empty(t, looks.InFlight())
	require.Eventually(t, func() bool {
		for _, rec := range i.Registry().Traffic().Window(0, -1) {
			if rec.Method == "tools/call" {
				return rec.Status == registry.StatusCancelled && rec.Code == 0 && rec.Time.Equal(u.Time)
			}
		}
		return false
	}, patience, 5*time.Millisecond)
	cost := looks.Usage().All
	require.Equal(t, []uint64{1, 0}, []uint64{cost.Calls, cost.Errors}, "it did not fail")
	require.Zero(t, cost.P50, "it was not answered")

	require.True(t, looks.Disconnect(asks.Session()))
	require.False(t, looks.Disconnect("nobody"))
	_, err := asks.Request(within(t), "ping", nil, nil)
	require.Error(t, err)
}

func TestClientGetsProgressInOrderBeforeTheResult(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"progress","n":200}]}`})
	c := open(t, i, nil)
	for _, params := range []string{`{"name":"s_t"}`, `{"name":"s_t","_meta":{"mine":"yes","progressToken":"x"}}`} {
		var got []int
		over := false
		_, err := c.Request(within(t), "tools/call", json.RawMessage(params), func(p json.RawMessage) {
			var n struct{ Progress, Total int }
			require.NoError(t, json.Unmarshal(p, &n))
			require.False(t, over)
			require.Equal(t, 200, n.Total)
			got = append(got, n.Progress)
		})
		require.NoError(t, err)
		over = true
		require.Len(t, got, 200)
		require.IsIncreasing(t, got)
	}
	received(t, logs["s"], `"mine":"yes"`, `"progressToken"`)

	got := 0
	_, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t","_meta":{"progressToken":7}}`), nil)
	require.NoError(t, err)
	require.Zero(t, got)
}

func TestClientCancelsAtTheServer(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"progress","n":1},{"do":"hang"}]}`})
	c := open(t, i, nil)
	cause := errors.New("the user pressed Esc")
	ctx, cancel := context.WithCancelCause(within(t))
	_, err := c.Request(ctx, "tools/call", json.RawMessage(`{"name":"s_t"}`), func(json.RawMessage) { cancel(cause) })
	require.ErrorIs(t, err, cause)
	received(t, logs["s"], "notifications/cancelled", "the user pressed Esc")
	_, err = c.Request(ctx, "ping", nil, nil)
	require.ErrorIs(t, err, cause)
}

func TestClientGetsBigResultsWhole(t *testing.T) {
	t.Parallel()
	const size = 6 << 20
	i, _ := start(t, "", fake{name: "s", script: tools + fmt.Sprintf(`,"on":{"tools/call t":[{"do":"big","bytes":%d}]}`, size)})
	c := open(t, i, nil)
	result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
	require.NoError(t, err)
	require.Greater(t, len(result), size)
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal(result, &r))
	require.True(t, r.Content[0].Text == strings.Repeat("x", size), "complete and in order")
}

const asking = tools + `,"on":{"tools/call t":[{"do":"request","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}},{"do":"answers"}]}`

func TestClientAnswersWhatServersAsk(t *testing.T) {
	t.Parallel()
	refused := &jsonrpc.Error{Code: -1, Message: "not now"}
	for name, test := range map[string]struct {
		ask  mcpclient.AskFunc
		want string
	}{
		"answer": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage("{\"action\":\"accept\",\n\"content\":{\"name\":\"Ada\"}}"), nil
		}, `[{"action":"accept","content":{"name":"Ada"}}]`},
		"coded error": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, fmt.Errorf("ask: %w", refused)
		}, `[{"error":{"code":-1,"message":"ask: not now"}}]`},
		"error": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("no")
		}, `[{"error":{"code":-32603,"message":"no"}}]`},
		"no object": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"a`), nil
		}, `[{"error":{"code":-32603,"message":"The answer is not an object"}}]`},
		"a list": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`[]`), nil
		}, `[{"error":{"code":-32603,"message":"The answer is not an object"}}]`},
		"panic": {func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			panic("oh")
		}, `[{"error":{"code":-32603,"message":"Internal error: the request was not answered"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			i, _ := start(t, "", fake{name: "s", script: asking})
			c := open(t, i, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				require.Equal(t, "elicitation/create", method)
				require.Contains(t, string(params), `"who?"`)
				return test.ask(ctx, method, params)
			})
			result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
			require.NoError(t, err)
			var r struct{ Content []struct{ Text string } }
			require.NoError(t, json.Unmarshal(result, &r))
			require.JSONEq(t, test.want, r.Content[0].Text)
		})
	}
}

func TestNobodyIsAskedWhereNobodyIs(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asking})
	c := open(t, i, nil)
	result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
	require.NoError(t, err)
	require.Contains(t, string(result), "did not declare elicitation")
}

func TestConfiguredRootsAnswerForAScreen(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "roots: [{uri: 'file:///srv'}]", fake{
		name: "s", script: tools + `,"on":{"tools/call t":[{"do":"request","method":"roots/list"},{"do":"answers"}]}`,
	})
	c := open(t, i, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("asked")
	})
	result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
	require.NoError(t, err)
	require.Contains(t, string(result), "file:///srv")
}

func TestQuestionEndsWithItsRequestAndWithTheClient(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"request", "client", "gateway"} {
		t.Run(how, func(t *testing.T) {
			i, _ := start(t, "", fake{name: "s", script: asking})
			asked, withdrawn := make(chan struct{}), make(chan struct{})
			c := open(t, i, func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
				close(asked)
				<-ctx.Done()
				close(withdrawn)
				return nil, ctx.Err()
			})
			ctx, cancel := context.WithCancel(within(t))
			ended := make(chan error, 1)
			go func() {
				_, err := c.Request(ctx, "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
				ended <- err
			}()
			<-asked
			switch how {
			case "request":
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				<-withdrawn
				_, err := c.Request(within(t), "ping", nil, nil)
				require.NoError(t, err)
			case "client":
				require.NoError(t, c.Close())
				<-withdrawn
				require.ErrorIs(t, <-ended, mcpclient.ErrClosed)
			case "gateway":
				_ = i.Stop(t.Context())
				<-withdrawn
				<-ended // with or without the server's answer
			}
			cancel()
		})
	}
}

func TestClientThatIsClosedCancelsWhatItAsked(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"progress","n":1},{"do":"hang"}]}`})
	c := open(t, i, nil)
	called, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := c.Request(context.Background(), "tools/call", json.RawMessage(`{"name":"s_t"}`), func(json.RawMessage) { close(called) })
		ended <- err
	}()
	<-called
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-ended, mcpclient.ErrClosed)
	received(t, logs["s"], "notifications/cancelled")
}

func TestPanicInProgressOfAScreenEndsNothing(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"progress","n":3}]}`})
	c := open(t, i, nil)
	n := 0
	_, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), func(json.RawMessage) { n++; panic("oh") })
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestClientsOfAnInstanceThatEndedAreRefused(t *testing.T) {
	t.Parallel()
	i, err := New(Options{Config: parse(t, "gateway: {}"), Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	c := open(t, i, nil)
	cancel()
	require.NoError(t, <-ended)
	_, err = c.Request(context.Background(), "ping", nil, nil)
	require.ErrorIs(t, err, mcpclient.ErrClosed)
	_, err = i.OpenClient(context.Background(), "late", nil)
	require.Error(t, err)
}

func TestAScreenIsToldWhatAClientCanAnswer(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: `"tools":[]`})
	screen := open(t, i, nil)
	for name, c := range map[string]struct{ can, want string }{
		"able":  {`{"elicitation":{"url":{}},"sampling":{}}`, "supports forms, URLs, sampling"},
		"plain": {`{}`, "no elicitation, no sampling"},
	} {
		joinAs(t, i, name, c.can)
		for _, s := range i.Registry().Sessions() {
			if s.Client == name {
				require.Equal(t, []string{c.want}, screen.SessionDetails(s.ID))
			}
		}
	}
	require.Empty(t, screen.SessionDetails(screen.Session()))
	require.Empty(t, screen.SessionDetails("nobody"))
}
