package main

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sdkMode is the argument that makes this program an MCP server on stdin and stdout.
const sdkMode = "sdkserver"

// sdkPrograms returns the programs with a server on mcp-go, as authors of servers use it. It
// is this program: the test server would take 5 ms longer to start if it linked mcp-go.
func (p programs) sdkPrograms() (programs, error) {
	self, err := os.Executable()
	p.server = []string{self, sdkMode}
	return p, err
}

// serveSDK serves the tool "echo", which answers at once with a text of "size" bytes.
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
	return server.ServeStdio(s)
}
