package meta_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/meta"
	"goblin/registry/rawjson"
)

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)\n```$")

func answerExamples(_ context.Context, method string, params []byte) ([]byte, error) {
	name := rawjson.GetString(params, "name")
	answers := map[string]string{
		"clock_time_in":     `{"content":[],"structuredContent":{"time":"12:00"}}`,
		"files_read_file":   `{"content":[{"type":"text","text":"two notes"}]}`,
		"data-server_query": `{"content":[{"type":"text","text":"{\"rows\":[{\"id\":42}]}"}]}`,
	}
	if answers[name] == "" {
		return nil, &answeredError{method + " " + name}
	}
	return []byte(answers[name]), nil
}

type answeredError struct{ text string }

func (e *answeredError) Error() string              { return e.text }
func (e *answeredError) ErrorCode() int             { return -32602 }
func (e *answeredError) ErrorData() json.RawMessage { return nil }

func TestExamplesOfTheREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	c := newCaller(t, newExampleCatalog(t), answerExamples)
	blocks := block.FindAllStringSubmatch(string(text), -1)
	shown := map[string]bool{}
	blocks = slices.DeleteFunc(blocks, func(b []string) bool { return b[1] == "yaml" })
	for i := 0; i < len(blocks); i += 2 {
		require.Less(t, i+1, len(blocks), "%s has no answer", blocks[i][2])
		kind, call, want := blocks[i+1][1], blocks[i][2], blocks[i+1][2]
		name, args, _ := strings.Cut(call, " ")
		if blocks[i][1] == "lua" {
			name, args = "execute_lua", string(rawjson.SetMember([]byte("{}"), "script", rawjson.Quote(call)))
		}
		shown[name] = true
		switch kind {
		case "answer":
			if name == "call_tool" { // every server calls the named tool
				answer, err := answerExamples(t.Context(), "tools/call", []byte(args))
				require.NoError(t, err)
				require.JSONEq(t, want, string(rawjson.Get(answer, "structuredContent")))
				continue
			}
			a := c.call(name, args)
			require.False(t, a.IsError, a.Content[0].Text)
			require.JSONEq(t, want, string(a.Structured), call)
		case "names":
			for list, member := range map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "skills": "uri"} {
				if strings.HasSuffix(name, list) {
					require.Equal(t, want, c.field(name, args, list, member)[0], call)
				}
			}
		case "error":
			require.Equal(t, want, c.failed(name, args), call)
		default:
			t.Fatalf("%q is followed by %q", call, kind)
		}
	}
	for _, name := range meta.Names() {
		require.True(t, shown[name], "no example of %s", name)
		require.Contains(t, string(text), "| `"+name+"` |", name)
	}
}
