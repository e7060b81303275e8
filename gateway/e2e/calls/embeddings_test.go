//go:build e2e

package calls

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestToolsAreFoundByMeaning(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		if broken.Load() || json.NewDecoder(r.Body).Decode(&q) != nil || r.Header.Get("Authorization") != "Bearer s3cr3t-token" {
			http.Error(rw, "no", http.StatusInternalServerError)
			return
		}
		var data []e2e.Obj
		for i, text := range q.Input {
			v := []int{1, 1}
			if strings.Contains(text, "gale") || strings.Contains(text, "forecast") {
				v[0] = 9
			}
			data = append(data, e2e.Obj{"index": i, "embedding": v})
		}
		_, _ = rw.Write(e2e.Marshal(e2e.Obj{"data": data}))
	}))
	defer model.Close()
	w := e2e.WithMeta(t)
	tools := []e2e.Obj{e2e.Tool("forecast", e2e.Obj{"description": "Tells the weather."}), e2e.Tool("mail", e2e.Obj{"description": "Sends mail."})}
	w.Backend("a", e2e.Obj{"tools": tools})
	w.Backend("b", e2e.Obj{"tools": tools})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"a"}}}
	w.Env = append(w.Env, "MODEL_TOKEN=s3cr3t-token")
	w.Write()
	config, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	config = append(config, "search: {embeddings: "+model.URL+"/v1, auth_token: \"${MODEL_TOKEN}\"}\n"...)
	require.NoError(t, os.WriteFile(w.Config, config, 0o600))

	web := w.Served()
	c := web.Client(false)
	find := func(query string) (names []string) {
		for _, tool := range e2e.Each(c.Ok("tools/call", e2e.Obj{"name": "search_tools", "arguments": e2e.Obj{"query": query}}), "structuredContent", "tools") {
			names = append(names, e2e.Str(tool, "name"))
		}
		return names
	}
	e2e.Eventually(t, "vectors of the tools of both servers", func() bool {
		return slices.Equal([]string{"a_forecast", "b_forecast"}, find("gale"))
	})

	narrow := web.RawClient()
	narrow.Web.Path = "/mcp/p/part"
	narrow.Init()
	c = narrow
	require.Equal(t, []string{"a_forecast"}, find("gale"), "only entries of the profile")

	broken.Store(true)
	require.Empty(t, find("gale"))
	require.Equal(t, []string{"a_mail"}, find("mail"))
	require.Equal(t, "1", web.Metric("mcp_search_embeddings_failed_total"))
	require.NotContains(t, w.Succeeds("validate"), "s3cr3t-token")
}
