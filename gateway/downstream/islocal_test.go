package downstream_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// A client is local unless there is a sign of another machine.
func TestClientsOfOtherMachinesAreNotLocal(t *testing.T) {
	t.Parallel()
	h := newScript()
	var local bool
	h.handle = func(x *downstream.Request) {
		local = x.IsLocal()
		x.Reply([]byte("{}"))
	}
	e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: h}, Listen: "0.0.0.0:1", AuthToken: "t"})
	t.Cleanup(e.Close)
	for _, c := range []struct {
		peer, header string
		local        bool
	}{
		{"127.0.0.1:5000", "", true},
		{"[::1]:5000", "", true},
		{"[::ffff:127.0.0.1]:5000", "", true},
		{"192.0.2.7:5000", "", false},
		{"[2001:db8::7]:5000", "", false},
		{"127.0.0.1:5000", "X-Forwarded-For", false},
		{"127.0.0.1:5000", "Forwarded", false},
		{"127.0.0.1:5000", "Via", false},
		{"@", "", false},
	} {
		req := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", "m")
		req.RemoteAddr = c.peer
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Authorization", "Bearer t")
		if c.header != "" {
			req.Header.Set(c.header, "x")
		}
		local = !c.local
		rec := httptest.NewRecorder()
		e.Handler().ServeHTTP(rec, req)
		require.Equal(t, 200, rec.Code, rec.Body.String())
		require.Equal(t, c.local, local, "%+v", c)
	}
}
