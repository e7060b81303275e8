// Command sdkserver is what measurements put behind Goblin where ratios count:
// an MCP server over stdio as authors of servers build them, on mcp-go. Its tool
// answers at once, as that of the other backend does.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
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
	if err := server.ServeStdio(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
