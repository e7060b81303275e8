//go:build conformance && unix

package upstream

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

const (
	official     = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0"
	officialName = "everything-server"
)

// officialServer installs the conformance server of the official Go SDK.
func officialServer(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	bin := filepath.Join(cache, "goblin-interop", "gobin")
	path := filepath.Join(bin, officialName)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "install", official)
	cmd.Env = append(os.Environ(), "GOBIN="+bin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// officialConfig returns the config of the server, and starts it if it uses HTTP.
func officialConfig(t *testing.T, path, kind string) config.Server {
	t.Helper()
	cfg := config.Server{Name: "files", Type: config.Stdio, Command: path, Isolation: config.Shared}
	if kind != "stdio" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := ln.Addr().String()
		require.NoError(t, ln.Close())
		cmd := exec.Command(path, "-http", addr, fmt.Sprintf("-stateless=%t", kind == "http"))
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		waitFor(t, "the server to listen", func() bool {
			conn, err := net.Dial("tcp", addr)
			return err == nil && conn.Close() == nil
		})
		cfg = config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: "http://" + addr, Isolation: config.Shared}
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
	}
	return cfg
}

func TestOfficialServerIsTakenInTheLegacyEra(t *testing.T) {
	path := officialServer(t)
	for _, kind := range []string{"stdio", "http", "http stateful"} {
		t.Run(kind, func(t *testing.T) {
			r := start(t, officialConfig(t, path, kind), inEra(config.BothEras)).whole()
			require.Equal(t, Legacy, r.up().Info().Era)
			got, err := r.call(r.up(), "test_simple_text")
			require.NoError(t, err)
			require.Contains(t, got, "simple text")
			if kind == "http stateful" {
				return // supports the modern era in its other mode only
			}
			got, err = do(r.modern(""), &Call{Method: "tools/call", Params: toolParams("test_input_required_result_elicitation", ""), ForwardInput: true})
			require.NoError(t, err)
			require.Contains(t, got, "input_required")
		})
	}
}

func TestOfficialServerInTheModernEra(t *testing.T) {
	path := officialServer(t)
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			cfg := officialConfig(t, path, kind)
			r := start(t, cfg, inEra(config.ModernEra)).whole()
			conn := r.up()
			require.Equal(t, Modern, conn.Info().Era)
			call := func(tool, arguments string) string {
				t.Helper()
				got, err := do(conn, &Call{Context: within(t), Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments)})
				require.NoError(t, err, tool)
				require.NotContains(t, got, "resultType", tool)
				require.False(t, strings.HasPrefix(got, "error"), "%s: %s", tool, got)
				return got
			}
			call("test_simple_text", `{}`)
			require.Contains(t, call("test_input_required_result_elicitation", `{}`), "Ann")
			require.Contains(t, call("test_input_required_result_sampling", `{}`), "sampled")
			require.Contains(t, call("test_input_required_result_list_roots", `{}`), "file:///r")
			call("test_input_required_result_request_state", `{}`)
			call("test_input_required_result_multiple_inputs", `{}`)
			call("test_input_required_result_multi_round", `{}`)
			call("test_x_mcp_header", `{"region":"Zürich"}`)

			var steps atomic.Int32
			params := []byte(`{"name":"test_tool_with_progress","arguments":{},"_meta":{"progressToken":"p"}}`)
			c := &Call{Context: within(t), Method: "tools/call", Params: params, LogLevel: "debug", Progress: func([]byte) { steps.Add(1) }}
			_, err := do(conn, c)
			require.NoError(t, err)
			require.EqualValues(t, 3, steps.Load())

			_, err = do(conn, &Call{Context: within(t), Method: "tools/call", Params: []byte(`{"name":"test_tool_with_logging","arguments":{}}`), LogLevel: "debug"})
			require.NoError(t, err)
			logged := func() int { return strings.Count(strings.Join(r.h.noted(), "\n"), "notifications/message") }
			require.Positive(t, logged())

			got, err := do(conn, &Call{Context: within(t), Method: "resources/subscribe", Params: []byte(`{"uri":"test://watched-resource"}`)})
			require.NoError(t, err)
			require.Equal(t, "{}", got)
			r.until("an update", func() bool { return strings.Contains(strings.Join(r.h.noted(), "\n"), `resources/updated`) })

			lists := r.cat.setCount(0)
			call("test_trigger_tool_change", `{}`)
			r.until("the list to be fetched again", func() bool { return r.cat.setCount(0) > lists })
		})
	}
}
