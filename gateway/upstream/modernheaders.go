package upstream

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Headers of a POST in the modern era (2026-07-28, transports, request headers).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

// named are the methods whose subject goes into Mcp-Name, and the member that
// holds it.
var named = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
	"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId", // SEP-2663
}

// modernHeaders are those of a call; params are as they are sent.
func (h *streamable) modernHeaders(c *Call, frame []byte) http.Header {
	head := http.Header{}
	head.Set(headerProtocol, modernRevision)
	head.Set(headerMethod, c.Method)
	member := named[c.Method]
	if member == "" {
		return head
	}
	params := rawjson.Get(frame, "params")
	name, _ := rawjson.String(rawjson.Get(params, member))
	if value, ok := mcp.EncodeHeaderValue(name); ok {
		head.Set(headerName, value)
	}
	if m := h.srv.mirrored.Load(); m != nil && c.Method == "tools/call" {
		m.Headers(head, name, rawjson.Get(params, "arguments"))
	}
	return head
}

// mirror learns from the tools of a list which of their arguments go into
// headers. Where all clients are served in the modern era, drop says so, it
// returns them without those whose annotations break the rules: such a tool could
// not be called as the revision wants it.
func (s *Server) mirror(items [][]byte, drop bool) [][]byte {
	m, kept := wire.MirrorsFromTools(items, func(name string, err error) (stays bool) {
		if drop {
			s.note(slog.LevelWarn, fmt.Sprintf("tool %q is left out: %s", s.quote(name, 200), s.quote(err.Error(), 300)))
		}
		return !drop
	})
	s.mirrored.Store(&m)
	return kept
}
