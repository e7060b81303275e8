package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"goblin/registry/export"
	"goblin/registry/recording"
)

const example = "testdata/example.jsonl"

// write exports a recording and returns the text.
func write(t testing.TB, path string, f export.Format, o export.Options) (string, export.Summary) {
	t.Helper()
	var out bytes.Buffer
	sum, err := export.Write(context.Background(), &out, f, func() (export.Source, error) { return recording.Open(path) }, o)
	require.NoError(t, err)
	return out.String(), sum
}

// recordingOf writes a recording of lines after a header.
func recordingOf(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "one.jsonl")
	text := `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"goblin":"0.1.0","bodies":true}` + "\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), v), "%.200s", text)
}

type har struct {
	Log struct {
		Pages   []struct{ ID, Title string }
		Entries []harEntry
	}
}

type harEntry struct {
	Pageref string
	Time    float64
	Request struct {
		URL      string
		Headers  []struct{ Name, Value string }
		PostData struct{ Text string }
	}
	Response struct {
		Status  int
		Content struct{ Text string }
	}
	Timings map[string]float64
	MCP     map[string]any `json:"_mcp"`
}

func harOf(t testing.TB, path string, o export.Options) (byNumber map[any]harEntry, h har) {
	text, _ := write(t, path, export.HAR, o)
	decode(t, text, &h)
	byNumber = map[any]harEntry{}
	for _, e := range h.Log.Entries {
		byNumber[e.MCP["n"]] = e
	}
	return byNumber, h
}

func TestHARFollowsTheSchema(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("testdata/har-1.2.schema.json")
	require.NoError(t, err)
	hostile := recordingOf(t,
		`{"type":"request","time":"0001-01-01T00:00:00Z","n":1,"method":"%zz ?#\u202e","name":"a/b?c#d %\u0000","took":-5,"startWait":1e300,"outcome":"","params":7,"answer":null}`,
		`{"type":"notification","time":"9999-01-01T00:00:00Z"}`, `{"type":"running","n":2}`)
	for _, path := range []string{example, hostile} {
		for _, o := range []export.Options{{}, {NoBodies: true}} {
			text, _ := write(t, path, export.HAR, o)
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(v))
		}
	}
}

func TestHARHasOneEntryPerExchangeWithTimesAndMCPFields(t *testing.T) {
	t.Parallel()
	entries, h := harOf(t, example, export.Options{})
	require.Len(t, h.Log.Entries, 25)
	require.Equal(t, "my-agent 1.2.3 (session s1)", h.Log.Pages[0].Title)
	order := entries[8.0]
	require.Equal(t, "s2", order.Pageref)
	require.Equal(t, "http://goblin.local/shop/tools/call/shop_place_order", order.Request.URL)
	require.Equal(t, 671.0, order.Time)
	require.Equal(t, map[string]float64{"blocked": 561, "wait": 110, "send": 0, "receive": 0, "dns": -1, "connect": -1, "ssl": -1}, order.Timings)
	require.Contains(t, order.Request.PostData.Text, `"count":12345678901234567890`, "numbers keep their digits")
	require.Contains(t, order.Response.Content.Text, `{"jsonrpc":"2.0","id":7,"result":{"content"`)
	require.Contains(t, order.Request.Headers, struct{ Name, Value string }{"User-Agent", "web-agent/4.0"})
	require.Subset(t, order.MCP, map[string]any{"session": "s2", "client": "web-agent", "server": "shop", "direction": "server", "method": "tools/call", "name": "shop_place_order", "original": "place_order", "clientId": 7.0, "serverId": 41.0, "outcome": "success", "startWait": 540.0, "profile": "coding"})
	require.Equal(t, 500, entries[9.0].Response.Status, "browsers mark failures by the status")
	require.Contains(t, entries[10.0].Response.Content.Text, `"error":{"code":-32602`)
	require.Equal(t, 0, entries[300.0].Response.Status, "unanswered")
	require.Equal(t, 100.0, entries[101.0].MCP["parent"])
	require.Equal(t, "client", entries[101.0].MCP["direction"])
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct{ Code int }
}

func (s *span) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

func spansOf(t testing.TB, path string) map[string]span {
	t.Helper()
	text, _ := write(t, path, export.OTLP, export.Options{Version: "0.9.0"})
	var request struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []any }
			ScopeSpans []struct{ Spans []span }
		}
	}
	decode(t, text, &request)
	all := map[string]span{}
	for _, s := range request.ResourceSpans[0].ScopeSpans[0].Spans {
		require.Len(t, s.TraceID, 32)
		require.Len(t, s.SpanID, 16)
		require.NotContains(t, all, s.SpanID, "ids are unique")
		all[s.SpanID] = s
	}
	return all
}

func TestOTLPLinksSpansByParentAndTraceparent(t *testing.T) {
	t.Parallel()
	all := spansOf(t, example)
	find := func(name string, kind int) *span {
		for _, s := range all {
			if s.Name == name && s.Kind == kind {
				return &s
			}
		}
		require.Fail(t, "no span "+name)
		return nil
	}
	order := find("tools/call shop_place_order", 2)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", order.TraceID)
	require.Equal(t, "00f067aa0ba902b7", order.ParentSpanID)
	for key, want := range map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "shop_place_order", "gen_ai.operation.name": "execute_tool", "mcp.session.id": "s2",
		"mcp.protocol.version": "2025-06-18", "jsonrpc.request.id": "7",
	} {
		require.Equal(t, want, order.attribute(key), key)
	}
	hop := find("tools/call place_order", 3)
	require.Equal(t, order.SpanID, hop.ParentSpanID)
	require.Equal(t, order.TraceID, hop.TraceID)
	require.Greater(t, hop.StartTimeUnixNano, order.StartTimeUnixNano, "the waits are before the hop")
	require.Equal(t, order.EndTimeUnixNano, hop.EndTimeUnixNano)

	script, child := find("tools/call goblin_lua", 2), find("tools/call files_read_file", 2)
	for _, s := range all {
		if s.Name == child.Name && s.ParentSpanID != "" && s.Kind == 2 {
			child = &s
		}
	}
	require.Equal(t, script.SpanID, child.ParentSpanID)
	require.Equal(t, script.TraceID, child.TraceID, "a child that is recorded before its parent is in the same trace")
	asked := find("elicitation/create", 3)
	require.Equal(t, find("tools/call shop_hang", 2).SpanID, asked.ParentSpanID)

	failed := find("tools/call nope", 2)
	require.Equal(t, 2, failed.Status.Code)
	require.Equal(t, "-32602", failed.attribute("error.type"))
	require.Equal(t, "tool_error", find("tools/call shop_fails", 2).attribute("error.type"))
	for _, s := range all {
		if s.ParentSpanID != "" && s.ParentSpanID != "00f067aa0ba902b7" {
			require.Contains(t, all, s.ParentSpanID, "no span may have a missing parent: %s", s.Name)
		}
	}
}

func TestACycleOfParentsEnds(t *testing.T) {
	t.Parallel()
	all := spansOf(t, recordingOf(t, `{"type":"request","n":1,"parent":2,"method":"a"}`, `{"type":"request","n":2,"parent":1,"method":"b"}`, `{"type":"request","n":3,"parent":3,"method":"c"}`))
	require.Len(t, all, 3)
}

func TestJSONLIsARecordingAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	big := `{"name":"t","arguments":{"text":"` + strings.Repeat("x", recording.MaxInline) + `"}}`
	sum := sha256.Sum256([]byte(big))
	hash := hex.EncodeToString(sum[:])
	require.NoError(t, os.MkdirAll(filepath.Join(folder, recording.BodyFolder, hash[:2]), 0o700))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(big))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(filepath.Join(folder, recording.BodyFolder, hash[:2], hash), packed.Bytes(), 0o600))
	request := fmt.Sprintf(`{"type":"request","time":"2026-01-02T03:04:06Z","n":1,"method":"tools/call","name":"t","params":[{"$file":"%s","size":%d}],"answer":{}}`, hash, len(big))
	for name, lines := range map[string]string{
		"1.jsonl": `{"type":"server","server":"v"}` + "\n" + request + "\n" + `{"type":"end"}`,
		"2.jsonl": `{"type":"client","session":"s"}` + "\n" + strings.Replace(request, `"t"`, `"later"`, 1) + "\n" + `{"type":"notification","parent":1,"method":"x"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(`{"type":"recording","version":1,"bodies":true}`+"\n"+lines+"\n"), 0o600))
	}
	text, _ := write(t, folder, export.JSONL, export.Options{Keep: func(l *recording.Line) bool { return l.Type != recording.TypeRequest || l.Name != "nothing" }})
	copied := filepath.Join(t.TempDir(), "copy.jsonl")
	require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
	r, err := recording.Open(copied)
	require.NoError(t, err)
	defer r.Close()
	var types []recording.Type
	var numbers []uint64
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		types, numbers = append(types, l.Type), append(numbers, l.Number, l.Parent)
		if l.Type == recording.TypeRequest {
			require.Equal(t, big, string(l.Params.JSON), "bodies of files are in the copy")
		}
	}
	problems, _ := r.Problems()
	require.Empty(t, problems)
	require.Equal(t, []recording.Type{"recording", "server", "request", "client", "request", "notification", "end"}, types)
	require.Equal(t, []uint64{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 2, 0, 0}, numbers, "files of several processes get different numbers")
}

func TestFilesOfOneProcessKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, number := range map[string]int{"1.jsonl": 7, "2.jsonl": 5} {
		text := fmt.Sprintf(`{"type":"recording","version":1,"started":"2026-01-01T00:00:00Z"}`+"\n"+`{"type":"request","n":%d,"parent":3,"method":"m"}`+"\n", number)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	entries, _ := harOf(t, folder, export.Options{})
	require.Equal(t, 3.0, entries[7.0].MCP["parent"])
	require.Equal(t, 3.0, entries[5.0].MCP["parent"])
}

func TestWithoutBodiesNoFormatContainsThem(t *testing.T) {
	t.Parallel()
	path := recordingOf(t, `{"type":"request","n":1,"session":"s","method":"tools/call","name":"t","params":{"name":"t","arguments":{"a":"PRIVATE"}},"answer":{"code":1,"message":"PRIVATE"},"sent":{"a":"PRIVATE"},"own":{"b":"PRIVATE"},"code":1,"outcome":"failure","error":"PRIVATE","rules":[{"time":"2026-01-02T03:04:05Z","rule":3,"text":"changed and sent"},{"time":"2026-01-02T03:04:05Z","rule":3,"text":"a: 1 → PRIVATE","quotes":true}]}`)
	for _, f := range export.Formats() {
		with, _ := write(t, path, f, export.Options{})
		require.Equal(t, f != export.OTLP, strings.Contains(with, "PRIVATE"), f) // traces never have bodies
		without, _ := write(t, path, f, export.Options{NoBodies: true})
		require.NotContains(t, without, "PRIVATE", f)
		require.Equal(t, f != export.Curl, strings.Contains(without, "changed and sent"), f)
	}
}

func TestFilteredRequestsAreInNoFormat(t *testing.T) {
	t.Parallel()
	for _, f := range export.Formats() {
		text, sum := write(t, example, f, export.Options{Keep: func(l *recording.Line) bool { return l.Server == "files" && l.Type == recording.TypeRequest }})
		require.NotContains(t, text, "shop_hang", f)
		require.Zero(t, sum.Notifications)
		require.Zero(t, sum.Unanswered)
	}
}

func TestTextsForTerminalsContainNoControlCharacters(t *testing.T) {
	t.Parallel()
	path := recordingOf(t, `{"type":"client","session":"\u001b[31m","client":"\u009b\u202e"}`,
		`{"type":"request","n":1,"session":"\u001b[31m","client":"\u009b","method":"\u001b]0;x\u0007","name":"\u202e`+"\u009b"+`","params":{"\u001b":"`+"\u009b\u202e"+`"},"wire":"i\u001b\na\u001b\n"}`)
	for _, f := range export.Formats() {
		text, _ := write(t, path, f, export.Options{})
		require.NotContains(t, text, "\x1b", f)
		require.NotContains(t, text, "\u009b", f)
		require.NotContains(t, text, "\u202e", f)
	}
}

func exportTo(t testing.TB, f export.Format, o export.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	_, err := export.Write(context.Background(), &out, f, func() (export.Source, error) { return recording.Open(example) }, o)
	return out.String(), err
}

// FuzzExport checks that damaged recordings never break a format.
func FuzzExport(f *testing.F) {
	text, err := os.ReadFile(example)
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		f.Add(line)
	}
	f.Add(`{"type":"request","n":18446744073709551615,"parent":1,"took":1e308,"params":[{"$file":"../../x","size":-1}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		path := recordingOf(t, line, line)
		for _, format := range export.Formats() {
			var out bytes.Buffer
			_, err := export.Write(context.Background(), &out, format, func() (export.Source, error) { return recording.Open(path) }, export.Options{})
			require.NoError(t, err)
			switch format {
			case export.HAR, export.OTLP:
				require.True(t, json.Valid(out.Bytes()), format)
			case export.HTML:
				require.Equal(t, 2, strings.Count(out.String(), "</script>"), "the data must not end its element")
			}
		}
	})
}

// A recording of a stranger may be small and compressed, but describe gigabytes.
func TestAnExportTakesLimitedMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	body := json.RawMessage(`{"x":"` + long + `","serverInfo":{"name":"` + long + `"}}`)
	var unanswered, servers, events []recording.Line
	for n := range 50 {
		unanswered = append(unanswered, recording.Line{Type: recording.TypeRunning, Number: uint64(n + 1), Method: "tools/call", Params: &recording.Body{JSON: body, Size: len(body)}})
		servers = append(servers, recording.Line{Type: recording.TypeServer, Server: fmt.Sprint(n), Handshake: body})
		events = append(events, recording.Line{Type: recording.TypeClient, Client: long, Session: fmt.Sprint(n)})
	}
	for _, row := range []struct {
		format export.Format
		lines  []recording.Line
		most   int // bytes
	}{{export.HAR, unanswered, 70 << 20}, {export.Curl, unanswered, 70 << 20}, {export.HTML, servers, 2 << 20}, {export.HTML, events, 2 << 20}} {
		var out bytes.Buffer
		_, err := export.Write(t.Context(), &out, row.format, func() (export.Source, error) { return export.NewLines(row.lines), nil }, export.Options{})
		require.NoError(t, err)
		require.Less(t, out.Len(), row.most, row.format)
	}
}
