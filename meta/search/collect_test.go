//go:build unix

package search_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
)

var collect = flag.Bool("collect", false, "update the servers of testdata/servers.json with npx")

const maxDescription = 300 // maximum, in bytes

// TestCollect writes testdata/tools.json. It needs Node and a package registry, and runs
// the installed packages. The entry of a server that does not start stays unchanged.
func TestCollect(t *testing.T) {
	if !*collect {
		t.Skip("run it with -collect")
	}
	var servers []struct {
		Server, Package string
		Args            []string
		Env             map[string]string
	}
	readJSON(t, "servers.json", &servers)
	known := map[string]collected{}
	for _, c := range toolFacts(t) {
		known[c.Server] = c
	}
	var all []collected
	for _, s := range servers {
		c, ok := known[s.Server]
		if !ok || c.Package != s.Package {
			env := []string{}
			for k, v := range s.Env {
				env = append(env, k+"="+v)
			}
			tools, err := listTools(t, env, append([]string{"-y", s.Package}, s.Args...))
			if err != nil {
				t.Logf("%s left out: %v", s.Package, err)
				continue
			}
			c = collected{s.Server, s.Package, license(s.Package), tools}
		}
		t.Logf("%s: %d tools", s.Package, len(c.Tools))
		all = append(all, c)
		text, err := json.MarshalIndent(all, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join("testdata", "tools.json"), append(text, '\n'), 0o644))
	}
}

func license(pkg string) string {
	out, _ := exec.Command("npm", "view", pkg, "license").Output()
	return strings.TrimSpace(string(out))
}

func listTools(t *testing.T, env, args []string) ([]toolFact, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	var child *exec.Cmd
	command := func(_ context.Context, name string, env, args []string) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "npm_config_cache=" + filepath.Join(os.TempDir(), "search-collect")}, env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		child = cmd
		return cmd, nil
	}
	c, err := client.NewStdioMCPClientWithOptions("npx", env, args, transport.WithCommandFunc(command))
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = c.Close()
		_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL) // processes left by npx
	}()
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: "2025-06-18", ClientInfo: mcp.Implementation{Name: "collect", Version: "1"},
	}}); err != nil {
		return nil, err
	}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var facts []toolFact
	for _, tool := range list.Tools {
		f := toolFact{Name: tool.Name, Title: tool.Title, Description: truncateWord(tool.Description)}
		if f.Title == "" {
			f.Title = tool.Annotations.Title
		}
		for name := range tool.InputSchema.Properties {
			f.Arguments = append(f.Arguments, name)
		}
		slices.Sort(f.Arguments)
		facts = append(facts, f)
	}
	return facts, nil
}

// truncateWord cuts a word at maxWord, between runes.
func truncateWord(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxDescription {
		return s
	}
	s = s[:maxDescription]
	return strings.ToValidUTF8(s[:strings.LastIndexByte(s, ' ')], "") + " …"
}
