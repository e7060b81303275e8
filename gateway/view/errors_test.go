package view_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func TestFailuresHaveTheirDocumentedErrors(t *testing.T) {
	t.Parallel()
	unknown := &registry.NotFoundError{Kind: registry.Resource, Name: "mcp://x/a:1", Reason: "Server 'x' not found"}
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
		data string
	}{
		{"resource", unknown, -32002, "RESOURCE_NOT_FOUND: Server 'x' not found: mcp://x/a:1", `{"code":"RESOURCE_NOT_FOUND","uri":"mcp://x/a:1"}`},
		{"while servers start", &view.PendingError{Err: unknown, Servers: []string{"a", "b"}}, -32002, "RESOURCE_NOT_FOUND: Server 'x' not found: mcp://x/a:1 (still starting: a, b)", `{"code":"RESOURCE_NOT_FOUND","uri":"mcp://x/a:1","pending":["a","b"]}`},
		{"tool", &registry.NotFoundError{Kind: registry.Tool, Name: "reed", Nearest: []string{"files_read"}}, -32602, `unknown tool "reed"; did you mean "files_read"?`, `{"code":"TOOL_NOT_FOUND","name":"reed"}`},
		{"prompt", &registry.NotFoundError{Kind: registry.Prompt, Name: "p"}, -32602, `unknown prompt "p"`, `{"code":"PROMPT_NOT_FOUND","name":"p"}`},
		{"down", &upstream.Error{Code: upstream.ConnectionError, Server: "files", Reason: "is not connected"}, -32603, `server "files": is not connected`, `{"code":"CONNECTION_ERROR","server":"files"}`},
		{"wrapped", fmt.Errorf("call: %w", &upstream.Error{Code: upstream.RequestTimeout, Server: "files", Reason: "no answer"}), -32603, `server "files": no answer`, `{"code":"REQUEST_TIMEOUT","server":"files"}`},
		{"cursor", registry.ErrBadCursor, -32602, "Invalid params: unknown cursor; list again without one", ""},
		{"cancelled", context.Canceled, -32603, "Request cancelled", ""},
		{"own", jsonrpc.Errorf(-32601, "Method not found: x"), -32601, "Method not found: x", ""},
		{"other", errors.New("disk on fire"), -32603, "disk on fire", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := view.ToJSONRPC(c.err)
			require.Equal(t, c.code, e.Code)
			require.Equal(t, c.text, e.Message)
			require.Equal(t, c.data, string(e.Data))
			require.NoError(t, rawjson.Valid(e.Object()))
		})
	}
	ambiguous := view.ToJSONRPC(&registry.AmbiguousError{Kind: registry.Tool, Name: "read", Candidates: []string{"a_read", "b_read"}})
	require.Equal(t, -32602, ambiguous.Code)
	require.JSONEq(t, `{"code":"AMBIGUOUS","candidates":["a_read","b_read"]}`, string(ambiguous.Data))
}
