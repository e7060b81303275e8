package viewer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResultsBecomeScreens(t *testing.T) {
	tests := []struct {
		name   string
		show   func(json.RawMessage) []Section
		result string
		want   string
	}{
		{
			"resource: text by its MIME type", FromResource,
			`{"contents":[
				{"uri":"a:1","mimeType":"application/vnd.x+json; charset=utf-8","text":"{\"a\":1}"},
				{"uri":"a:2","mimeType":"text/markdown","text":"*x* - [y](z)"},
				{"uri":"a:3","mimeType":"text/html","text":"{\"b\": 2}"},
				{"uri":"a:4","text":"[3]"},
				{"uri":"a:5","mimeType":"application/yaml","text":"{c}"}]}`,
			`
			uri   a:1
			type  application/vnd.x+json; charset=utf-8

			{
			  "a": 1
			}

			uri   a:2
			type  text/markdown

			x - y (z)

			uri   a:3
			type  text/html

			{"b": 2}

			uri  a:4

			[
			  3
			]

			uri   a:5
			type  application/yaml

			{c}
			`,
		},
		{
			"resource: bytes, of either alphabet and padded or not", FromResource,
			`{"contents":[{"uri":"a:1","mimeType":"x/y","blob":"` + blob("ab") + `"},{"blob":"_-8"},{"blob":"?"}]}`,
			`
			uri  a:1

			type    x/y
			size    2 B
			sha256  fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603

			00000000  61 62                                             |ab|

			size    2 B
			sha256  b6e2c63144f1cd8b806ef4206dea177ec4e756614d9ee5b6521dac2136a67ba7

			00000000  ff ef                                             |..|

			! the data is not base64: illegal base64 data at input byte 0
			`,
		},
		{
			"resource: an odd entry does not spoil the others", FromResource,
			`{"contents":[{"uri":"a:1","text":7},3,{"uri":"a:2","text":"fine"}]}`,
			`
			{
			  "uri": "a:1",
			  "text": 7
			}

			3

			uri  a:2

			fine
			`,
		},
		{"resource: nothing", FromResource, `{"contents":[]}`, "the server sent no contents\n"},
		{"resource: no result of the kind", FromResource, `{"x":1}`, "{\n  \"x\": 1\n}\n"},
		{"resource: no JSON", FromResource, `x`, "not JSON: line 1, column 1: unexpected 'x'\n\nx\n"},
		{"no result at all", FromTool, ``, "empty\n"},
		{
			"tool: an error", FromTool, `{"isError":true,"content":[{"type":"text","text":"no such file"}]}`,
			`
			! the tool reports an error

			no such file
			`,
		},
		{
			"tool: every kind of content", FromTool,
			`{"isError":false,"content":[
				{"type":"text","text":"{\"a\":1}"},
				{"type":"text","text":"# Head\n*x*"},
				{"type":"image","mimeType":"image/x","data":"` + blob("ab") + `"},
				{"type":"resource_link","uri":"a:1","name":"n","title":"t","description":"d","mimeType":"m/n","size":2048},
				{"type":"resource","resource":{"uri":"a:2","text":"embedded"}},
				{"type":"video","x":1},
				{"type":"text"}],
			"structuredContent":{"b":2}}`,
			`
			{
			  "a": 1
			}

			# Head
			x

			content  image

			type    image/x
			size    2 B
			sha256  fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603

			image/x, 2 B, not drawn: only png, jpeg, gif and webp are supported

			00000000  61 62                                             |ab|

			link   a:1
			name   n
			title  t
			about  d
			type   m/n
			size   2.0 kB (2048 bytes)

			uri  a:2

			embedded

			{
			  "type": "video",
			  "x": 1
			}

			{
			  "type": "text"
			}

			Structured
			{
			  "b": 2
			}
			`,
		},
		{"tool: nothing", FromTool, `{"content":[]}`, "the result has no content\n"},
		{"tool: no result of the kind", FromTool, `{"toolResult":1}`, "{\n  \"toolResult\": 1\n}\n"},
		{
			"prompt", FromPrompt,
			`{"description":"About","messages":[
				{"role":"user","content":{"type":"text","text":"hello"}},
				{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"user","content":[]},
				{"odd":1}]}`,
			`
			About

			1 user
			hello

			2 assistant
			a

			b

			3 user
			empty

			4 message
			{
			  "odd": 1
			}
			`,
		},
		{"prompt: nothing", FromPrompt, `{"messages":[]}`, "the prompt has no messages\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := document(t, build(t, Options{Depth: -1, Width: 80}, tt.show(json.RawMessage(tt.result))...))
			require.Equal(t, unindent(tt.want), got)
		})
	}
}

func TestAResultOfTooManyPartsIsCut(t *testing.T) {
	part := `{"type":"text","text":"x"},`
	result := `{"content":[` + strings.TrimSuffix(strings.Repeat(part, 1200), ",") + `]}`
	blocks := FromTool(json.RawMessage(result))
	require.Len(t, blocks, 1001)
	require.Equal(t, Section{Kind: Note, Text: "and 200 more"}, blocks[1000])
}

func TestTextOfAResultIsWhatTheServerSent(t *testing.T) {
	tests := []struct{ name, result, want string }{
		{"resource", `{"contents":[{"text":"a\u001b\n"},{"blob":"YQ=="},{"text":"b"}]}`, "a\x1b\nb"},
		{"tool", `{"content":[{"type":"text","text":"a"},{"type":"resource","resource":{"text":"b"}}],"structuredContent":{}}`, "a\nb"},
		{"prompt", `{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":[{"type":"text","text":"b"}]}]}`, "a\nb"},
		{"no text", `{"structuredContent":{"a":1}}`, `{"structuredContent":{"a":1}}`},
		{"odd parts", `{"content":[7,{"text":7},null,{"text":"a"}]}`, "a"},
		{"no JSON", `{`, "{"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, JoinText(json.RawMessage(tt.result)))
		})
	}
}

func TestBlobIsTheFirstPartThatIsBytes(t *testing.T) {
	tests := []struct {
		name, result string
		file, mime   string
		data         string
		ok           bool
	}{
		{"resource", `{"contents":[{"text":"a"},{"uri":"file:///a/b%20c.png?x#y","mimeType":"image/png","blob":"%s"}]}`, "b_20c.png", "image/png", "data", true},
		{"image of a tool", `{"content":[{"type":"image","mimeType":"image/png","data":"%s"}]}`, "", "image/png", "data", true},
		{"embedded", `{"content":[{"type":"resource","resource":{"uri":"x:böb","blob":"%s"}}]}`, "böb", "", "data", true},
		{"a name that climbs", `{"contents":[{"uri":"file:///a/..","blob":"%s"}]}`, "", "", "data", true},
		{"a name of control characters", `{"contents":[{"uri":"x:/\u001b[2J\u202e\\a","blob":"%s"}]}`, "__2J__a", "", "data", true},
		{"invalid ones are passed over", `{"contents":[{"blob":"?"},{"uri":"x:/y/","blob":"%s"}]}`, "y", "", "data", true},
		{"none", `{"contents":[{"text":"a"}]}`, "", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result := strings.Replace(tt.result, "%s", blob("data"), 1)
			name, mime, data, ok := FirstBlob(json.RawMessage(result))
			require.Equal(t, []string{tt.file, tt.mime, tt.data, fmt.Sprint(tt.ok)}, []string{name, mime, string(data), fmt.Sprint(ok)})
		})
	}
}

func FuzzResults(f *testing.F) {
	for _, s := range []string{
		"", "null", `{"contents":[{"text":"a"},{"blob":"YQ=="}]}`, `{"content":{"type":"text"}}`, `{"content":[{"type":"resource","resource":[]}]}`,
		`{"messages":[{"content":[{"type":"image","data":""}]}]}`, `{"messages":[null,[],{"content":null}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, show := range []func(json.RawMessage) []Section{FromResource, FromTool, FromPrompt} {
			blocks := show(raw)
			require.NotEmpty(t, blocks, "something is always shown")
			require.NotZero(t, build(t, Options{}, blocks...).Len())
		}
		JoinText(raw)
		FirstBlob(raw)
	})
}
