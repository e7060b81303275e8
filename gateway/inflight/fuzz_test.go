package inflight

import (
	"encoding/json"
	"strings"
	"testing"

	"goblin/registry/rawjson"
)

// FuzzResultsLinkToTheirServer checks all links and embedded resources that encoding/json
// finds in a result. Each must belong to the server that sent the result.
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
			t.Fatalf("%q is in %s", uri, text)
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
			return rawjson.Splice(w.Read(rawjson.Result(method), result), w.Edits...)
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
