//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func TestHandshakeNegotiatesAndDescribesTheServer(t *testing.T) {
	t.Parallel()
	r := startFake(t, "all", nil).whole()
	conn := r.up()
	info := conn.Info()
	require.Equal(t, "2025-06-18", info.Protocol)
	require.Equal(t, Legacy, info.Era)
	require.Equal(t, "be nice", info.Instructions)
	require.True(t, info.Has("resources", "subscribe"))
	require.False(t, info.Has("resources", "listChanged"), "false means no capability")
	require.False(t, info.Has("logging"))

	st := r.cat.state()
	require.Equal(t, registry.StateReady, st.State)
	require.Equal(t, "stdio", st.Transport)
	require.Equal(t, "fake", st.ServerName)
	require.Equal(t, "2025-06-18", st.ProtocolVersion)
	require.Positive(t, st.PID)
	require.Positive(t, r.cat.States()[0].Latency, "for the lists, not for the start")

	got := r.received()
	require.Contains(t, got, `"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"goblin","version":"test"}`)
	require.Less(t, strings.Index(got, "notifications/initialized"), strings.Index(got, "/list"))
}

func TestRefusedHandshakesSayWhy(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"refuse":         "refused initialize: bad key (code -32000)",
		"null-init":      "not an object",
		"bad-version":    `"9999-99-99"`,
		"number-version": "without a protocolVersion",
		"crash-start":    "cannot open the database",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, mode, nil)
			<-r.FirstList()
			_, err := r.Conn()
			requireCode(t, err, ConnectionError, want)
			require.Equal(t, registry.StateFailed, r.cat.state().State)
			require.NotZero(t, r.cat.state().Attempts)
			require.False(t, r.cat.state().NextAttempt.IsZero())
			require.Contains(t, r.cat.state().LastError, want)
			require.False(t, r.Listed())
		})
	}
}

func TestHungStartEndsAtTheStartupTimeout(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "hang-start")
	cfg.StartupTimeout = 100 * time.Millisecond
	r := start(t, cfg, nil)
	<-r.FirstList()
	_, err := r.Conn()
	requireCode(t, err, ConnectionError, "startup_timeout")
}

// Many programs print their help on stdout, some also their errors.
func TestWhatAServerPrintsInsteadOfMCPIsQuoted(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ends":  "echo 'Usage: foo --stdio'; exit 2",
		"hangs": "echo 'Usage: foo --stdio'; exec sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := fakeConfig(t, "")
			cfg.Command, cfg.Args = "sh", []string{"-c", script}
			cfg.StartupTimeout = time.Second
			r := start(t, cfg, nil)
			// The process may exit before it prints anything. It is started again.
			var err error
			r.until("its output", func() bool {
				_, err = r.Conn()
				return err != nil && strings.Contains(err.Error(), "; output: Usage: foo --stdio")
			})
			requireCode(t, err, ConnectionError, "")
		})
	}
}

func TestMissingCommandSaysWhatToDo(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "")
	cfg.Command = "no-such-command-anywhere"
	r := start(t, cfg, nil)
	<-r.FirstList()
	_, err := r.Conn()
	requireCode(t, err, ConnectionError, "install it")

	cfg, _ = fakeConfig(t, "")
	cfg.Cwd = "/no/such/folder"
	r = start(t, cfg, nil)
	<-r.FirstList()
	_, err = r.Conn()
	requireCode(t, err, ConnectionError, "is not a folder")
}

func TestRepliesPassRaw(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	got, err := do(r.up(), &Call{Method: "tools/call", Params: toolParams("echo", `,"arguments":{"b":1.0,"a":9007199254740993}`)})
	require.NoError(t, err)
	require.Regexp(t, `^\{"n":12345678901234567890\.10,"args":\{"b":1\.0,"a":9007199254740993\},"token":[0-9]+\}$`, got, "Goblin's token, since the client has none")

	reply, err := r.up().Call(&Call{Method: "nothing/such"})
	require.NoError(t, err, "a server's error is not an Error")
	require.JSONEq(t, `{"code":-32601,"message":"Method not found: nothing/such"}`, string(reply.Error))
}

func TestParamsWithLineBreaksStayOneMessage(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	got, err := do(r.up(), &Call{Method: "tools/call", Params: []byte("{\n\"name\": \"echo\",\r\n\"arguments\": 1}")})
	require.NoError(t, err)
	require.Contains(t, got, `"args":1`)
}

func TestEditsAndTokenMergeInOrder(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	params := []byte(`{"name":"X","_meta":{"progressToken":"theirs"},"arguments":{"q":"Y"}}`)
	at := func(s string) rawjson.Edit {
		i := strings.Index(string(params), s)
		return rawjson.Edit{Start: i, End: i + len(s)}
	}
	name, arg := at(`"X"`), at(`"Y"`)
	name.Text, arg.Text = []byte(`"echo"`), []byte(`"yes"`)
	for i, edits := range [][]rawjson.Edit{{name, arg}, {name}, {name, arg}} {
		got, err := do(r.up(), &Call{Method: "tools/call", Params: params, Edits: edits})
		require.NoError(t, err)
		var v struct {
			Token int
			Args  struct{ Q string }
		}
		require.NoError(t, json.Unmarshal([]byte(got), &v))
		require.Positive(t, v.Token, "the client's token was replaced")
		require.Equal(t, []string{"yes", "Y", "yes"}[i], v.Args.Q)
	}
}

func TestOddAnswers(t *testing.T) {
	t.Parallel()
	r := startFake(t, "odd", nil)
	conn := r.up()
	for tool, want := range map[string]string{
		"garbage": `{"ok":1}`, "glued": `{"ok":1}`, "flood": `{"ok":1}`, "batch": `{"ok":1}`, "posing": `{"ok":1}`,
		"utf8": "{\"t\":\"a\uFFFDb\"}", "bad-ask": `{"ok":1}`,
	} {
		got, err := r.call(conn, tool)
		require.NoError(t, err, tool)
		require.Equal(t, want, got, tool)
	}
	for tool, want := range map[string]string{
		"broken": "malformed answer", "deep": "nested more than 512 deep", "scalar": "not an object", "huge": "limits.frame",
	} {
		_, err := r.call(conn, tool)
		requireCode(t, err, BadReply, want)
	}
	require.NoError(t, conn.Err(), "none of it closes the connection")
	r.until("a report of the garbage", func() bool { return r.cat.logged("skipped text that is not a message") })
	r.until("an answer to the request with bad params", func() bool {
		return strings.Contains(r.received(), `"id":"b1","error":{"code":-3260`)
	})
}

func TestErrorsOfTheServerPassIfTheyAreSome(t *testing.T) {
	t.Parallel()
	conn := startFake(t, "", nil).up()
	fail := func(object string) (string, error) {
		return do(conn, &Call{Method: "tools/call", Params: toolParams("fail", `,"reply":{"error":`+object+`}`)})
	}
	for _, object := range []string{
		`{"code":-32000,"message":"m","data":1.50}`, `{"code":0,"message":""}`, `{"message":"m","x":[1],"code":7}`,
	} {
		got, err := fail(object)
		require.NoError(t, err)
		require.Equal(t, "error "+object, got)
	}
	for _, object := range []string{
		`{}`, `{"code":"x","message":"m"}`, `{"code":-32000}`, `{"message":"m"}`, `{"code":1.5,"message":"m"}`,
		`{"code":null,"message":"m"}`, `{"code":1,"message":{"a":1}}`, `"boom"`, `[]`,
	} {
		got, err := fail(object)
		requireCode(t, err, BadReply, "sent an error")
		require.Empty(t, got)
	}
	require.NoError(t, conn.Err())
}

func TestStderrGoesToTheJournalInBoundedLines(t *testing.T) {
	t.Parallel()
	r := startFake(t, "odd", nil)
	_, err := r.call(r.up(), "flood")
	require.NoError(t, err)
	r.until("stderr", func() bool { return r.cat.logged("xxxx") })
	for _, rec := range r.cat.Logs().Window(0, -1) {
		require.LessOrEqual(t, len(rec.Text), maxStderrLine)
	}
}

func TestSecretsThatAServerPrintsAreShownNowhere(t *testing.T) {
	t.Parallel()
	redact := func(r *rig) {
		r.opt.Redact = func(s string) string { return strings.ReplaceAll(s, fakeSecret, "[hidden]") }
	}
	var log slogText
	secretive := func(mode string) *rig {
		cfg, _ := fakeConfig(t, mode)
		return start(t, cfg, func(r *rig) {
			redact(r)
			r.Server.log = slog.New(slog.NewTextHandler(&log, nil))
		})
	}
	clean := func(r *rig, err error) {
		t.Helper()
		require.Error(t, err)
		texts := []string{err.Error(), r.cat.state().LastError, log.String()}
		for _, rec := range r.cat.Logs().Window(0, -1) {
			texts = append(texts, rec.Text)
		}
		all := strings.Join(texts, "\n")
		require.Contains(t, all, "hidden]")
		require.NotContains(t, all, "sk-s", "not even a half")
	}

	r := secretive("").whole()
	_, err := r.call(r.up(), "blab")
	require.ErrorContains(t, err, "output: "+strings.Repeat("x", maxQuote-20)+"[hidden]")
	r.until("the state", func() bool { return r.cat.state().LastError != "" })
	r.until("stderr", func() bool { return r.cat.logged("yyyy") })
	clean(r, err)

	for _, mode := range []string{"blab-refuse", "blab-version", "blab-garbage"} {
		r = secretive(mode)
		<-r.FirstList()
		_, err = r.Conn()
		clean(r, err)
	}
}

// slogText collects the output of a logger.
type slogText struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (s *slogText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *slogText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestCrashFailsCallsAtOnceAndTheServerComesBack(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"crash", "mid-line", "close-stdout"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, "", func(r *rig) {
				if tool == "close-stdout" {
					r.tune.drain = 200 * time.Millisecond // limits the wait for its exit
				}
			}).whole()
			conn := r.up()
			hang := make(chan error, 1)
			go func() {
				_, err := r.call(conn, "hang")
				hang <- err
			}()
			r.until("the hanging call", func() bool { return strings.Contains(r.received(), `"hang"`) })
			_, err := r.call(conn, tool)
			requireCode(t, err, ConnectionError, "the process")
			requireCode(t, <-hang, ConnectionError, "the process")
			if tool == "crash" {
				require.ErrorContains(t, err, "exit status 7")
				require.ErrorContains(t, err, "out of cheese")
			}
			<-conn.Done()
			require.Error(t, conn.Err())
			_, err = conn.Call(&Call{Method: "tools/list"})
			requireCode(t, err, ConnectionError, "")

			r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
			again, err := r.Conn()
			require.NoError(t, err)
			got, err := r.call(again, "echo")
			require.NoError(t, err)
			require.Contains(t, got, "args")
			require.Equal(t, 1, r.cat.state().Restarts)
			require.Equal(t, []string{""}, r.h.downs())
			r.until("ready again", func() bool { return len(r.h.readies()) == 2 })
		})
	}
}

func TestEachCallHasATimeoutOfItsOwn(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	conn := r.up()
	ctx, cancel := context.WithCancel(context.Background())
	long := make(chan error, 1)
	go func() {
		_, err := do(conn, &Call{Context: ctx, Method: "tools/call", Params: toolParams("hang", ""), Timeout: time.Hour})
		long <- err
	}()
	r.until("the long call", func() bool { return strings.Contains(r.received(), `"hang"`) })
	for range 2 { // before the long one, which keeps running
		_, err := do(conn, &Call{Method: "tools/call", Params: toolParams("hang", ""), Timeout: 20 * time.Millisecond})
		requireCode(t, err, RequestTimeout, "no answer to tools/call within 20ms")
		require.NotContains(t, err.Error(), "(timeout)", "a longer timeout in the config would not help")
	}
	require.Empty(t, long)
	cancel()
	require.ErrorIs(t, <-long, context.Canceled)
}

func TestTimeoutsAndCancellationReachTheServer(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	conn := r.up()
	_, err := do(conn, &Call{Method: "tools/call", Params: toolParams("hang", ""), Timeout: 30 * time.Millisecond})
	requireCode(t, err, RequestTimeout, "tools/call")

	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the client has gone")
	go func() {
		r.until("the call", func() bool { return strings.Count(r.received(), `"hang"`) == 2 })
		cancel(gone)
	}()
	_, err = do(conn, &Call{Context: ctx, Method: "tools/call", Params: toolParams("hang", "")})
	require.ErrorIs(t, err, gone)

	var ids []string
	for line := range strings.Lines(r.received()) {
		m, err := jsonrpc.Parse([]byte(strings.TrimSpace(line)))
		if err == nil && strings.Contains(line, `"hang"`) {
			ids = append(ids, string(m.ID))
		}
	}
	require.Len(t, ids, 2)
	for i, reason := range []string{"timed out", "cancelled by the client"} {
		want := fmt.Sprintf(`"notifications/cancelled","params":{"requestId":%s,"reason":%q}`, ids[i], reason)
		r.until(want, func() bool { return strings.Contains(r.received(), want) })
	}
}

func TestProgressExtendsTheTimeoutAndStopsWithTheAnswer(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	var returned atomic.Bool
	var seen []string
	var last time.Time
	c := &Call{
		Method: "tools/call", Params: toolParams("progress", `,"_meta":{"progressToken":"tok"}`),
		Timeout: time.Hour,
	}
	c.Progress = func(params []byte) {
		if returned.Load() {
			t.Error("progress after the answer")
		}
		seen = append(seen, string(rawjson.Get(params, "progress")))
		_, _, deadline := c.timer.Check(time.Now())
		if !deadline.After(last) {
			t.Error("the time is not extended")
		}
		last = deadline
	}
	got, err := do(r.up(), c)
	returned.Store(true)
	require.NoError(t, err)
	require.Equal(t, `{"ok":1}`, got)
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6"}, seen)
	// The progress after the answer has no call, so the handler receives it.
	r.until("stray progress", func() bool { return len(r.h.noted()) == 1 })
}

func text(t *testing.T, result string) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal([]byte(result), &r))
	require.Len(t, r.Content, 1)
	return r.Content[0].Text
}

func TestRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	t.Run("ping is answered", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "", nil)
		got, err := r.call(r.up(), "ping")
		require.NoError(t, err)
		require.Equal(t, `[{}]`, text(t, got))
	})
	t.Run("answers pass as they are", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "", func(r *rig) {
			r.h.request = func(_ context.Context, _ *Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
				return []byte(`{"model":1.50,"asked":"` + method + `","with":` + string(params) + `}`), nil
			}
		})
		got, err := r.call(r.up(), "sample")
		require.NoError(t, err)
		require.Equal(t, `[{"model":1.50,"asked":"sampling/createMessage","with":{"n":1.50}}]`, text(t, got))
	})
	t.Run("errors are answered", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "", nil)
		got, err := r.call(r.up(), "sample")
		require.NoError(t, err)
		require.Contains(t, text(t, got), `"code":-32601`)
	})
	t.Run("a withdrawn one gets no answer", func(t *testing.T) {
		t.Parallel()
		ended := make(chan error, 1)
		r := startFake(t, "", func(r *rig) {
			r.h.request = func(ctx context.Context, _ *Call, _ string, _ []byte) ([]byte, *jsonrpc.Error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return []byte("{}"), nil
			}
		})
		_, err := r.call(r.up(), "withdraw")
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, context.Canceled)
		_, err = r.call(r.up(), "echo")
		require.NoError(t, err)
		require.NotContains(t, r.received(), `"id":"w"`)
	})
	t.Run("too many are refused", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		r := startFake(t, "", func(r *rig) {
			r.h.request = func(ctx context.Context, _ *Call, _ string, _ []byte) ([]byte, *jsonrpc.Error) {
				<-release
				return []byte("{}"), nil
			}
		})
		_, err := r.call(r.up(), "nag")
		require.NoError(t, err)
		r.until("refusals", func() bool { return strings.Count(r.received(), "too many open requests") == 5 })
		close(release)
		r.until("answers", func() bool { return strings.Count(r.received(), `"result":{}`) == maxRequests })
	})
	t.Run("too large ones are refused", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		r := startFake(t, "", func(r *rig) {
			r.tune.requestBytes, r.opt.Limits.Frame = maxAskingBytes, maxAskingBytes
			r.h.request = func(ctx context.Context, _ *Call, _ string, _ []byte) ([]byte, *jsonrpc.Error) {
				<-release
				return []byte("{}"), nil
			}
		})
		_, err := r.call(r.up(), "heavy")
		require.NoError(t, err)
		r.until("refusals", func() bool { return strings.Count(r.received(), "open requests are too large") == 2 })
		close(release)
		r.until("answers", func() bool { return strings.Count(r.received(), `"result":{}`) == 3 })
		_, err = r.call(r.up(), "heavy")
		require.NoError(t, err)
		r.until("answers, as before", func() bool { return strings.Count(r.received(), `"result":{}`) >= 6 })
	})
}

func TestNotificationsComeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	_, err := r.call(r.up(), "say")
	require.NoError(t, err)
	require.Equal(t, []string{`notifications/message {"level":"info","data":1.50}`}, r.h.noted())
}
