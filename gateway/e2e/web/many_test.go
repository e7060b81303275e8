//go:build e2e

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestMetricsBoundMIMETypes(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	reads := e2e.Obj{}
	var all []e2e.Obj
	for i := range 100 {
		uri := fmt.Sprint("x:", i)
		all = append(all, e2e.Resource(uri))
		reads[uri] = []e2e.Obj{{"uri": uri, "mimeType": fmt.Sprint("application/x-", i), "text": ""}}
	}
	w.Backend("b", e2e.Obj{"resources": all, "reads": reads})
	s := w.Serve()
	c := s.Client(false)
	for _, uri := range c.Names("resources") {
		c.Ok("resources/read", e2e.Obj{"uri": uri})
	}
	body := s.Do("GET", "/metrics", nil, "").Body
	require.LessOrEqual(t, strings.Count(body, "mcp_resource_reads_total{"), 66)
	require.Contains(t, body, `mime_type="other"`)
}

func TestH14_SameIdsInManySessionsStayApart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	var clients []*e2e.Client
	for range 20 {
		clients = append(clients, s.Client(false))
	}
	ids := make([]string, len(clients))
	for i, c := range clients {
		ids[i] = c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"i": i}})
	}
	for i, c := range clients {
		require.Equal(t, ids[0], ids[i])
		require.Equal(t, fmt.Sprintf(`b:t:{"i":%d}`, i), e2e.Str(c.End(ids[i]).Result, "content", 0, "text"))
	}
}
