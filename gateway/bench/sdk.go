package main

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const sdkMode = "sdkserver"

// sdkPrograms uses this program as the server. The test server would start 5 ms later if
// it linked mcp-go.
func (p programs) sdkPrograms() (programs, error) {
	self, err := os.Executable()
	p.server = []string{self, sdkMode}
	return p, err
}

// serveSDK serves stdio, or Streamable HTTP at the address in the second argument.
func serveSDK() error {
	s := server.NewMCPServer("bench", "1", server.WithToolCapabilities(false))
	var texts sync.Map // results of echo, by size
	s.AddTool(mcp.NewTool("echo", mcp.WithNumber("size")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		size := r.GetInt("size", 0)
		text, known := texts.Load(size)
		if !known {
			text, _ = texts.LoadOrStore(size, strings.Repeat("x", max(size, 0)))
		}
		return mcp.NewToolResultText(text.(string)), nil
	})
	if len(os.Args) > 2 && strings.Contains(os.Args[2], ":") {
		return server.NewStreamableHTTPServer(s).Start(os.Args[2])
	}
	return server.ServeStdio(s)
}
