package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// oldWeb is a scripted server of the HTTP+SSE transport of 2024-11-05.
func oldWeb(t *testing.T, endpoint string) (*httptest.Server, *atomic.Value) {
	events := make(chan string, 100)
	var last atomic.Value
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tok" {
			w.WriteHeader(401)
			return
		}
		send := eventsTo(w)
		send("event: endpoint\ndata: " + endpoint)
		for {
			select {
			case <-r.Context().Done():
				return
			case e := <-events:
				if e == "" {
					return
				}
				send("event: message\ndata: " + e)
			}
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		m, err := jsonrpc.Parse(body)
		if err != nil {
			return
		}
		switch {
		case m.IsResponse():
			last.Store(string(m.Result))
		case m.Method == "initialize":
			events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`, m.ID)
		case m.Method == "tools/list":
			events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","vendor":1.50}]}}`, m.ID)
		case m.Method == "tools/call":
			// A request with the same ID as the call. They are independent.
			events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"n":1.50}}`, m.ID)
			name := rawjson.GetString(m.Params, "name")
			if name == "bye" {
				events <- ""
				return
			}
			events <- `{"jsonrpc":"2.0","method":"notifications/message","params":{"big":9007199254740993}}`
			events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"x":1.50}}`, m.ID)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv, &last
}

func TestSSETransportIsLossless(t *testing.T) {
	t.Parallel()
	for _, typ := range []config.Type{config.SSE, config.HTTP} { // HTTP falls back
		t.Run(string(typ), func(t *testing.T) {
			t.Parallel()
			srv, last := oldWeb(t, "/messages?session=1")
			cfg := config.Server{
				Name: "files", Type: typ, URL: srv.URL + "/sse", Isolation: config.Shared,
				Headers: map[string]string{"Authorization": "Bearer tok"},
			}
			r := start(t, cfg, func(r *rig) {
				r.h.request = func(_ context.Context, _ *Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
					return append([]byte(`{"echo":`), append(params, '}')...), nil
				}
			}).whole()
			conn := r.up()
			require.Equal(t, "2024-11-05", conn.Info().Protocol)
			require.Equal(t, "sse", r.cat.state().Transport)
			require.Equal(t, []string{`{"name":"a","vendor":1.50}`}, r.cat.list(registry.Tool))
			got, err := r.call(conn, "a")
			require.NoError(t, err)
			require.Equal(t, `{"x":1.50}`, got)
			require.Equal(t, []string{`notifications/message {"big":9007199254740993}`}, r.h.noted())
			r.until("the answer", func() bool { return last.Load() == `{"echo":{"n":1.50}}` })

			_, err = r.call(conn, "bye")
			requireCode(t, err, ConnectionError, "closed the stream")
			r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
		})
	}
}

func TestSSEEndpointOfAnotherOriginIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	srv, _ := oldWeb(t, thief.URL+"/messages")
	r := start(t, config.Server{
		Name: "files", Type: config.SSE, URL: srv.URL + "/sse", Headers: map[string]string{"Authorization": "Bearer tok"},
	}, nil)
	<-r.FirstList()
	_, err := r.Conn()
	requireCode(t, err, ConnectionError, "endpoint")
	require.False(t, reached.Load())

	for endpoint, same := range map[string]bool{
		"/messages": true, "https://a.example/messages": true, "//a.example/messages": true,
		"http://a.example/messages": false, "https://a.example:8443/messages": false, "//b.example/messages": false, "file:///messages": false,
	} {
		base, err := url.Parse("https://a.example/sse")
		require.NoError(t, err)
		target, err := base.Parse(endpoint)
		require.NoError(t, err)
		require.Equal(t, same, origin(target) == origin(base), endpoint)
	}
}
