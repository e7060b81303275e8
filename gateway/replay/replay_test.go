package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"bodies":true}` + "\n" +
	`{"type":"server","time":"2026-01-02T03:04:05Z","server":"s","handshake":{"protocolVersion":"2025-06-18"},"lists":{"tools":[{"name":"t"}]}}` + "\n"

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "one.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t testing.TB, text, rules string) *replay.Server {
	t.Helper()
	parsed, err := replay.ParseRules([]byte(rules))
	require.NoError(t, err)
	s, err := replay.Load(write(t, text), "s", parsed)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

const noRules = "ignore: []"

// peer is a client of a served recording.
type peer struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func serve(t *testing.T, s *replay.Server) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(context.Background(), replay.Options{In: inR, Out: outW, Fast: true, Log: slog.New(slog.DiscardHandler)})
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		_, _ = io.Copy(io.Discard, outR)
		require.NoError(t, <-ended)
	})
	out := bufio.NewScanner(outR)
	out.Buffer(nil, 64<<20)
	return &peer{t, inW, out}
}

func (p *peer) send(id int, method, params string) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	require.NoError(p.t, err)
}

type reply struct {
	ID     int
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (p *peer) receive() (r reply) {
	p.t.Helper()
	require.True(p.t, p.out.Scan())
	require.NoError(p.t, json.Unmarshal(p.out.Bytes(), &r))
	return r
}

func request(n int, params, answer string) string {
	return fmt.Sprintf(`{"type":"request","time":"2026-01-02T03:04:06Z","n":%d,"server":"s","method":"tools/call","name":"s_t","original":"t","answered":true,"outcome":"success","params":%s,"answer":%s}`+"\n", n, params, answer)
}

func TestConcurrentEqualCallsGetEachAnswerOnce(t *testing.T) {
	t.Parallel()
	const calls = 100
	text := header
	for i := range calls {
		text += request(i+1, `{"name":"s_t"}`, fmt.Sprintf(`{"i":%d}`, i))
	}
	p := serve(t, load(t, text, noRules))
	go func() {
		for i := range calls {
			p.send(i, "tools/call", `{"name":"t"}`)
		}
	}()
	for range calls {
		r := p.receive()
		require.JSONEq(t, fmt.Sprintf(`{"i":%d}`, r.ID), string(r.Result), "in the order of the requests")
	}
}

func TestARecordingWithoutSettingsIsReplayed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"type":"recording","version":1,"bodies":true}`+"\n"+`{"type":"server","server":"files"}`+"\n"), 0o600))
	cfg, err := replay.NewConfig(replay.Setup{Program: os.Args[0], Recording: path})
	require.NoError(t, err)
	require.Len(t, cfg.Servers, 1)
}

// Each server of a recording is a process.
func TestARecordingOfTooManyServersIsNotReplayed(t *testing.T) {
	t.Parallel()
	text := []byte(header)
	for n := range 600 {
		text = fmt.Appendf(text, `{"type":"server","server":"s%d","handshake":{}}`+"\n", n)
	}
	_, err := replay.NewConfig(replay.Setup{Program: os.Args[0], Recording: write(t, string(text))})
	require.ErrorContains(t, err, "at most 500")
}

func TestManyBodiesAreNotHeldInMemory(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	var text strings.Builder
	text.WriteString(header)
	const calls = 70 // more than what is held
	for i := range calls {
		text.WriteString(request(i+1, fmt.Sprintf(`{"name":"t","arguments":{"i":%d}}`, i), fmt.Sprintf(`{"i":%d,"big":%q}`, i, big)))
	}
	p := serve(t, load(t, text.String(), noRules))
	for _, i := range []int{calls - 1, 0, calls - 2} {
		p.send(i, "tools/call", fmt.Sprintf(`{"name":"t","arguments":{"i":%d}}`, i))
		require.JSONEq(t, fmt.Sprintf(`{"i":%d,"big":%q}`, i, big), string(p.receive().Result))
	}
}

func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	var tools []string
	for i := range 5000 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, strings.Repeat("d", 1000)))
	}
	text := strings.Replace(header, `{"name":"t"}`, strings.Join(tools, ","), 1)
	p := serve(t, load(t, text, noRules))
	var names []string
	cursor := ""
	for pages := 1; ; pages++ {
		p.send(pages, "tools/list", fmt.Sprintf(`{"cursor":%q}`, cursor))
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		require.NoError(t, json.Unmarshal(p.receive().Result, &page))
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			require.Greater(t, pages, 1)
			break
		}
	}
	require.Len(t, names, 5000)
	require.Equal(t, "t4999", names[4999])
	p.send(0, "tools/list", `{"cursor":"x"}`)
	require.Equal(t, -32602, p.receive().Error.Code)
}

func TestRulesIgnorePaths(t *testing.T) {
	t.Parallel()
	const recorded = `{"name":"t","arguments":{"a":1,"rows":[{"id":1,"v":2},{"id":2}],"o":{"x.y":1}}}`
	for _, test := range []struct {
		rule, sent string
		hit        bool
	}{
		{`{paths: [arguments.a]}`, strings.Replace(recorded, `"a":1`, `"a":9`, 1), true},
		{`{paths: [$.arguments.a]}`, strings.Replace(recorded, `"a":1,`, ``, 1), true},
		{`{paths: [arguments.b]}`, strings.Replace(recorded, `"a":1`, `"a":9`, 1), false},
		{`{paths: ["arguments.rows[*].id"]}`, strings.Replace(recorded, `"id":2`, `"id":9`, 1), true},
		{`{paths: ["arguments.rows[0].id"]}`, strings.Replace(recorded, `"id":2`, `"id":9`, 1), false},
		{`{paths: ["arguments.rows[1]"]}`, strings.Replace(recorded, `{"id":2}`, `7`, 1), true},
		{`{paths: ["..id"]}`, strings.Replace(recorded, `"id":1`, `"id":9`, 1), true},
		{`{paths: ["arguments.*.*"]}`, strings.Replace(recorded, `"x.y":1`, `"x.y":9`, 1), true},
		{`{paths: ["arguments.o['x.y']"]}`, strings.Replace(recorded, `"x.y":1`, `"x.y":9`, 1), true},
		{`{method: "prompts/*", paths: [arguments.a]}`, strings.Replace(recorded, `"a":1`, `"a":9`, 1), false},
		{`{server: x, paths: [arguments.a]}`, strings.Replace(recorded, `"a":1`, `"a":9`, 1), false},
		{`{server: s, name: t, paths: [arguments.a]}`, strings.Replace(recorded, `"a":1`, `"a":9`, 1), true},
	} {
		p := serve(t, load(t, header+request(1, recorded, `{"found":true}`), "ignore: ["+test.rule+"]"))
		p.send(1, "tools/call", test.sent)
		require.Equal(t, test.hit, string(p.receive().Result) == `{"found":true}`, test.rule)
	}
	for _, wrong := range []string{"", "x", "ignore: [{paths: []}]", "ignore: [{paths: ['']}]", "ignore: [{paths: ['a[x]']}]", "ignore: [{paths: ['a..']}]", `ignore: [{paths: ["a['b"]}]`, "ignore: [{path: [a]}]", "ignore: [{method: '[', paths: [a]}]"} {
		_, err := replay.ParseRules([]byte(wrong))
		require.Error(t, err, wrong)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add("arguments.rows[*].id")
	f.Add(`..['a\'b'][3].*`)
	f.Fuzz(func(t *testing.T, path string) {
		text, err := json.Marshal(map[string]any{"ignore": []any{map[string]any{"paths": []string{path}}}})
		require.NoError(t, err)
		_, _ = replay.ParseRules(text)
	})
}

// FuzzServe replays any lines to any request. Each request gets one answer.
func FuzzServe(f *testing.F) {
	f.Add(request(1, `{"name":"t","arguments":{"key":"[hidden:0a1b2c3d]"}}`, `{"a":"[hidden:0a1b2c3d]"}`), "tools/call", `{"name":"t","arguments":{"key":"x"}}`)
	f.Add(`{"type":"list","time":"2026-01-02T03:04:07Z","server":"s","list":"tools","removed":["t"]}`, "tools/list", `{"cursor":"1"}`)
	f.Add(request(1, `{"taskId":"1"}`, `{"task":{}}`), "tools/call", `{"name":"t","task":{"ttl":1}}`)
	f.Add(request(1, `{"ref":{"uri":"a"}}`, `[1]`), "completion/complete", `{"ref":{"name":"a"},"n":1e5000}`)
	f.Fuzz(func(t *testing.T, lines, method, params string) {
		if method == "subscriptions/listen" || !json.Valid([]byte(params)) || !strings.HasPrefix(params, "{") || strings.ContainsAny(params, "\r\n") {
			return
		}
		s, err := replay.Load(write(t, header+lines), "s", nil)
		if err != nil {
			return // such as a header without bodies
		}
		defer s.Close()
		p := serve(t, s)
		name, err := json.Marshal(method)
		require.NoError(t, err)
		go fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}`+"\n", name, params)
		for {
			require.True(t, p.out.Scan())
			var m struct {
				ID     json.RawMessage
				Method *string
			}
			require.NoError(t, json.Unmarshal(p.out.Bytes(), &m), p.out.Text())
			if m.Method == nil {
				return
			}
		}
	})
}

func TestAnswersOfRulesAreNotReplayed(t *testing.T) {
	t.Parallel()
	const rules = `"rules":[{"time":"2026-01-02T03:04:06Z","rule":1,"text":"answered"}]`
	call := func(n int, more string) string {
		return fmt.Sprintf(`{"type":"request","time":"2026-01-02T03:04:06Z","n":%d,"server":"s","method":"tools/call","name":"t","params":{"name":"t","arguments":{"n":%[1]d}},%s,%s}`+"\n", n, rules, more)
	}
	s := load(t, header+
		call(1, `"outcome":"success","answer":{"by":"a rule"}`)+
		call(2, `"outcome":"failure","code":-5,"answered":true,"answer":{"code":-5,"message":"by a rule"},"own":{"content":[]}`)+
		call(3, `"outcome":"success","answered":true,"answer":{"by":"a rule"},"own":{"code":-6,"message":"the server's"}`), noRules)
	p := serve(t, s)
	for n := 1; n <= 3; n++ {
		p.send(n, "tools/call", fmt.Sprintf(`{"name":"t","arguments":{"n":%d}}`, n))
		r := p.receive()
		switch n {
		case 1:
			require.NotContains(t, string(r.Result), "a rule")
		case 2:
			require.JSONEq(t, `{"content":[]}`, string(r.Result))
		case 3:
			require.Equal(t, "the server's", r.Error.Message)
		}
	}
}

// A fast client continues its call before the line of the first request is written.
func TestLinesOfAContinuedCallMayBeReversed(t *testing.T) {
	t.Parallel()
	asked := strings.Replace(request(1, `{"name":"s_t"}`, `{"resultType":"input_required","requestState":"x",`+
		`"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}}}}`), `"answered":true,`, "", 1)
	continued := request(2, `{"name":"s_t","requestState":"x","inputResponses":{"a":{"action":"decline"}}}`, `{"content":[]}`)
	for _, text := range []string{asked + continued, continued + asked} {
		p := serve(t, load(t, header+text, noRules))
		p.send(1, "tools/call", `{"name":"t"}`)
		require.True(t, p.out.Scan())
		require.Contains(t, p.out.Text(), "who?")
		_, err := fmt.Fprintln(p.in, `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`)
		require.NoError(t, err)
		require.JSONEq(t, `{"content":[]}`, string(p.receive().Result))
	}
}

func TestAContinuedCallWithoutItsFirstRequestIsReplayed(t *testing.T) {
	t.Parallel()
	p := serve(t, load(t, header+request(2, `{"name":"s_t","requestState":"x"}`, `{"content":[]}`), noRules))
	p.send(1, "tools/call", `{"name":"t"}`)
	require.JSONEq(t, `{"content":[]}`, string(p.receive().Result))
}

// A recording of others decides what is compared with a request, and how often a secret
// is in an answer.
func TestHiddenSecretsTakeLimitedTimeAndMemory(t *testing.T) {
	t.Parallel()
	const hidden = "[hidden:0a1b2c3d]"
	text := header + request(1, `{"name":"s_t","arguments":{"a":"`+hidden+hidden+`"}}`, `{"i":1}`)
	text += request(2, `{"name":"s_t","arguments":{"b":"key `+hidden+`!"}}`, `{"text":"`+strings.Repeat(hidden, 2000)+`"}`)
	text += request(3, `{"name":"s_t","arguments":{"c":"[hidden:00000001], [hidden:00000002] and [hidden:00000001]"}}`, `{"text":"[hidden:00000002]"}`)
	p := serve(t, load(t, text, noRules))
	for id, row := range []struct{ arguments, want string }{
		{`{"a":"` + strings.Repeat("a", 50_000) + `b"}`, "too large to compare"},
		{`{"a":"short"}`, "arguments.a: recorded"},
		{`{"b":"key ` + strings.Repeat("b", 16_000) + `!"}`, "make the message too large"},
		{`{"c":"a, b, c and a"}`, `{"text":"b, c"}`},
	} {
		p.send(id, "tools/call", `{"name":"t","arguments":`+row.arguments+`}`)
		require.Contains(t, string(p.receive().Result), row.want, id)
	}
}
