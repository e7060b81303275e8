package gateway

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// visitor does something with a client's first request.
type visitor func(*downstream.Exchange)

func (v visitor) Handle(x *downstream.Exchange)              { v(x) }
func (visitor) Opened(*downstream.Session)                   {}
func (visitor) Closed(*downstream.Session)                   {}
func (visitor) Notified(*downstream.Session, string, []byte) {}

// FuzzRequestState: a state that was not given for this very request leads to
// nothing but its refusal.
func FuzzRequestState(f *testing.F) {
	f.Add(`""`, false)
	f.Add(`"`+strings.Repeat("A", 86)+`"`, true)
	f.Add(`null`, true)
	f.Add(`{"a":1}`, false)
	f.Fuzz(func(t *testing.T, state string, append bool) {
		if rawjson.Valid([]byte(state)) != nil {
			return
		}
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1.0}}}`
		seen := false
		err := downstream.ServeStream(t.Context(), downstream.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handler: visitor(func(x *downstream.Exchange) {
				defer x.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "done"))
				seen = true
				r := &request{Exchange: x}
				var t1 holds
				t1.init(time.Minute)
				own := t1.again(r)
				h, err := t1.resume(r, rawjson.Quote(own))
				require.NoError(t, err)
				require.Nil(t, h)
				foreign := state
				if text, ok := rawjson.String([]byte(state)); ok && append {
					foreign = string(rawjson.Quote(own + text))
					if text == "" {
						return
					}
				}
				_, err = t1.resume(r, []byte(foreign))
				require.ErrorContains(t, err, "requestState")
			}),
		}, "stdio", strings.NewReader(line), io.Discard)
		require.NoError(t, err)
		require.True(t, seen)
	})
}

// FuzzResultsLinkToTheirServer: what clients built with encoding/json take for a
// link or an embedded resource is one of the server that sent the result.
func FuzzResultsLinkToTheirServer(f *testing.F) {
	for _, block := range []string{
		`{"type":"resource_link","uri":"mcp://o/1","URI":"mcp://o/2"}`, `{"Type":"resource_link","type":"text","uri":"mcp://o/1"}`,
		`{"type":"resource","resource":{"uri":"a","Uri":"mcp://o/1"},"re\u017fource":{"uri":"mcp://o/2"}}`, `[{"uri":"a","uri":"b"}]`,
	} {
		f.Add([]byte(`{"content":[` + block + `],"messages":[{"content":` + block + `}],"contents":[` + block + `]}`))
	}
	type link struct {
		Type     string `json:"type"`
		URI      string `json:"uri"`
		Resource struct {
			URI string `json:"uri"`
		} `json:"resource"`
	}
	own := func(t *testing.T, uri string, text []byte) {
		if uri != "" && !strings.HasPrefix(uri, "mcp://s/") {
			t.Fatalf("%q stands in %s", uri, text)
		}
	}
	check := func(t *testing.T, l link, text []byte) {
		switch l.Type {
		case "resource_link":
			own(t, l.URI, text)
		case "resource":
			own(t, l.Resource.URI, text)
		}
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if rawjson.Valid(result) != nil || !rawjson.IsObject(result) {
			return
		}
		rewritten := func(method string) []byte {
			w := newRewriter()
			return rawjson.Splice(w.read(members.Result(method), result), w.edits...)
		}
		var tool struct {
			Content []link `json:"content"`
		}
		text := rewritten("tools/call")
		if json.Unmarshal(text, &tool) == nil {
			for _, l := range tool.Content {
				check(t, l, text)
			}
		}
		var prompt struct {
			Messages []struct {
				Content link `json:"content"`
			} `json:"messages"`
		}
		if text = rewritten("prompts/get"); json.Unmarshal(text, &prompt) == nil {
			for _, m := range prompt.Messages {
				check(t, m.Content, text)
			}
		}
		var read struct {
			Contents []link `json:"contents"`
		}
		if text = rewritten("resources/read"); json.Unmarshal(text, &read) == nil {
			for _, l := range read.Contents {
				own(t, l.URI, text)
			}
		}
	})
}
