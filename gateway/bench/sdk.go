package main

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sdkMode is the argument that turns this program into an MCP server on stdin and stdout.
const sdkMode = "sdkserver"

// sdkPrograms returns the programs with a typical mcp-go server. It is this program,
// because linking mcp-go would slow the test server's start by 5 ms.
func (p programs) sdkPrograms() (programs, error) {
	self, err := os.Executable()
	p.server = []string{self, sdkMode}
	return p, err
}

// serveSDK serves the tool "echo", which returns a text of "size" bytes.
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
