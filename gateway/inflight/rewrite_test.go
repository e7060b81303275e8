package inflight

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/rawjson"
)

func newRewriter() *Rewriter {
	r := registry.New(registry.Options{Servers: []string{"s"}})
	return &Rewriter{Registry: r, Namer: r, Server: "s"}
}

var rewrites = []struct {
	name, result, want string
	tree               *rawjson.KeyTree
}{
	{
		"contents of a read: only uri",
		`{"contents":[{"uri":"file:///a","text":"file:///a","_meta":{"uri":"file:///a"}},{"blob":"AA==","uri":"x\u003ay","mimeType":"image/png"}],"uri":"file:///a"}`,
		`{"contents":[{"uri":"mcp://s/file:///a","text":"file:///a","_meta":{"uri":"file:///a"}},{"blob":"AA==","uri":"mcp://s/x:y","mimeType":"image/png"}],"uri":"file:///a"}`,
		rawjson.Result("resources/read"),
	},
	{
		"tool result: links and embedded resources, never text or structured content",
		`{"content":[{"uri":"file:///l","type":"resource_link","size":12345678901234567890},{"type":"resource","resource":{"uri":"file:///e","text":"file:///e"}},{"type":"text","text":"file:///l","uri":"file:///odd"},{"type":"video","uri":"v:1"}],"structuredContent":{"uri":"file:///l"},"_meta":{"ui":{"resourceUri":"ui://w"}}}`,
		`{"content":[{"uri":"mcp://s/file:///l","type":"resource_link","size":12345678901234567890},{"type":"resource","resource":{"uri":"mcp://s/file:///e","text":"file:///e"}},{"type":"text","text":"file:///l","uri":"file:///odd"},{"type":"video","uri":"v:1"}],"structuredContent":{"uri":"file:///l"},"_meta":{"ui":{"resourceUri":"ui://s/w"}}}`,
		rawjson.Result("tools/call"),
	},
	{
		"prompt: content of messages, single and in lists",
		`{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:1","text":""}}},{"content":[{"type":"resource_link","uri":"a:2"}]},{"content":{"type":"text","text":"a:3"}}]}`,
		`{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"mcp://s/a:1","text":""}}},{"content":[{"type":"resource_link","uri":"mcp://s/a:2"}]},{"content":{"type":"text","text":"a:3"}}]}`,
		rawjson.Result("prompts/get"),
	},
	{
		"error data",
		`{"code":-32002,"message":"file:///a is gone","data":{"uri":"file:///a","other":[]}}`,
		`{"code":-32002,"message":"file:///a is gone","data":{"uri":"mcp://s/file:///a","other":[]}}`,
		rawjson.ErrorObject,
	},
	{
		"odd contents",
		`{"contents":{"uri":"a:1"}}`, `{"contents":{"uri":"a:1"}}`, rawjson.Result("resources/read"),
	},
	{
		"odd blocks",
		`{"content":[null,7,{"type":"resource"},{"type":"resource_link","uri":5},[{"type":"resource_link","uri":"a"}]]}`,
		`{"content":[null,7,{"type":"resource"},{"type":"resource_link","uri":5},[{"type":"resource_link","uri":"a"}]]}`,
		rawjson.Result("tools/call"),
	},
	{"odd messages", `{"messages":"x"}`, `{"messages":"x"}`, rawjson.Result("prompts/get")},
	{"odd data", `{"data":null}`, `{"data":null}`, rawjson.ErrorObject},
	{
		"ambiguous members are omitted",
		`{"content":[{"type":"resource_link","uri":"a:1","URI":"mcp://o/a:2"}],"Content":[]}`,
		`{"content":[{"type":"resource_link","uri":"mcp://s/a:1"}]}`,
		rawjson.Result("tools/call"),
	},
}

func TestRewritesChangeURIsAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range rewrites {
		t.Run(c.name, func(t *testing.T) {
			result := []byte(c.result)
			require.NoError(t, rawjson.Valid(result))
			w := newRewriter()
			text := w.Read(c.tree, result)
			require.Equal(t, c.want, string(rawjson.Splice(text, w.Edits...)))
		})
	}
}

func TestLinksThatAServerGaveBecomeReadable(t *testing.T) {
	t.Parallel()
	result := []byte(`{"content":[{"type":"resource_link","uri":"file:///output.json"}]}`)
	w := newRewriter()
	_, err := w.Registry.ResolveResource("mcp://s/file:///output.json")
	require.Error(t, err, "it was never listed")
	w.Read(rawjson.Result("tools/call"), result)
	target, err := w.Registry.ResolveResource("mcp://s/file:///output.json")
	require.NoError(t, err)
	require.Equal(t, "file:///output.json", target.Name)
}

// FuzzRewrite compares rewriting with decoding. The output is JSON of the same shape, and
// all its URIs are rewritten.
func FuzzRewrite(f *testing.F) {
	for _, c := range rewrites {
		f.Add([]byte(c.result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if rawjson.Valid(result) != nil || len(result) > 1<<16 {
			return
		}
		for _, tree := range []*rawjson.KeyTree{
			rawjson.Result("resources/read"), rawjson.Result("tools/call"), rawjson.Result("prompts/get"), rawjson.Result("tasks/get"), rawjson.ErrorObject,
		} {
			w := newRewriter()
			out := rawjson.Splice(bytes.Clone(w.Read(tree, result)), w.Edits...)
			if err := rawjson.Valid(out); err != nil {
				t.Fatalf("%q became %q: %v", result, out, err)
			}
			again := newRewriter()
			again.Read(tree, out)
			if len(again.Edits) != len(w.Edits) {
				t.Fatalf("%q: %d URIs, then %d in %q", result, len(w.Edits), len(again.Edits), out)
			}
			var before, after any
			if json.Unmarshal(result, &before) == nil && json.Unmarshal(out, &after) != nil {
				t.Fatalf("%q no longer decodes: %q", result, out)
			}
		}
	})
}

func BenchmarkToolResult(b *testing.B) {
	text := bytes.Repeat([]byte("lorem ipsum "), 87_000)
	result := append(append([]byte(`{"content":[{"type":"text","text":"`), text...), `"}]}`...)
	b.SetBytes(int64(len(result)))
	b.ReportAllocs()
	for b.Loop() {
		w := Rewriter{Server: "s"}
		w.Read(rawjson.Result("tools/call"), result)
	}
}
