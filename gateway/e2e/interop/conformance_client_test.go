//go:build conformance

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The suite's other half tests clients: it runs a command against its own servers. The
// command is this test's binary. It puts Goblin in front of such a server and uses
// everything that the server offers. So the server sees Goblin as its client.

// conformClient names the variable that turns the binary into that command. It contains
// the path of the tested program.
const conformClient = "GOBLIN_CONFORMANCE_CLIENT"

func init() {
	if program := os.Getenv(conformClient); program != "" {
		if err := beClient(program, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// clientScenarios are the scored scenarios, except those about logins.
var clientScenarios = []string{
	"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "request-metadata",
	"sep-2322-client-request-state", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
	"json-schema-ref-no-deref", "json-schema-2020-12-preservation",
}

func TestConformanceOfGoblinAsAClient(t *testing.T) {
	dir, self := npm(t), must(os.Executable())
	for _, scenario := range clientScenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			results := t.TempDir()
			cmd := exec.CommandContext(ctx, nodeBinary(dir), filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", self, "--scenario", scenario, "--timeout", "60000", "--output-dir", results)
			cmd.Env = append(os.Environ(), conformClient+"="+e2e.Goblin)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
			require.NoError(t, err)
			require.Len(t, files, 1, "%s", out)
			var checks []struct{ ID, Status, ErrorMessage string }
			require.NoError(t, json.Unmarshal(must(os.ReadFile(files[0])), &checks))
			require.NotEmpty(t, checks)
			for _, c := range checks {
				require.NotContains(t, []string{"FAILURE", "WARNING"}, c.Status, "%s: %s", c.ID, c.ErrorMessage)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// driver is a client of Goblin in front of a scenario's server.
type driver struct {
	out  *json.Encoder
	in   *bufio.Scanner
	last int
}

// beClient uses everything that the server at a URL offers, through the program.
func beClient(program, url string) error {
	dir, err := os.MkdirTemp("", "conform")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("servers: {s: {url: %q}}\ngateway: {meta_tools: false, startup_wait: 20s}\n", url)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(program, "stdio", "--standalone", "--config", config)
	cmd.Env, cmd.Stderr = append(os.Environ(), "XDG_STATE_HOME="+dir), os.Stderr
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		return err
	}
	d := &driver{out: json.NewEncoder(in), in: bufio.NewScanner(out)}
	d.in.Buffer(nil, 16<<20)
	err = d.use()
	in.Close()                           //nolint:errcheck // the program exits
	_, _ = io.Copy(io.Discard, d.rest()) // so that it can
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	return err
}

func (d *driver) rest() io.Reader {
	for d.in.Scan() {
	}
	return strings.NewReader("")
}

// ask sends a request and answers requests from the server meanwhile. An error as the
// answer doesn't fail the driver.
func (d *driver) ask(method string, params any) (json.RawMessage, error) {
	d.last++
	if err := d.out.Encode(e2e.Obj{"jsonrpc": "2.0", "id": d.last, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for d.in.Scan() {
		m := json.RawMessage(d.in.Text())
		asked := e2e.Str(m, "method")
		switch {
		case asked == "" && string(e2e.At(m, "id")) == fmt.Sprint(d.last):
			return e2e.At(m, "result"), nil
		case asked != "" && e2e.At(m, "id") != nil:
			answer := e2e.Obj{"jsonrpc": "2.0", "id": e2e.At(m, "id"), "result": answerTo(asked, e2e.At(m, "params"))}
			if err := d.out.Encode(answer); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("no answer to %s", method)
}

func (d *driver) use() error {
	_, err := d.ask("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": everything, "clientInfo": e2e.Obj{"name": "conformance", "version": "1"}})
	if err != nil {
		return err
	}
	if err := d.out.Encode(e2e.Obj{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return err
	}
	tools, err := d.ask("tools/list", e2e.Obj{})
	if err != nil {
		return err
	}
	for _, call := range calls(e2e.Each(tools, "tools")) {
		if _, err := d.ask("tools/call", call); err != nil {
			return err
		}
	}
	for _, kind := range []struct{ list, member, key, use string }{
		{"resources/list", "resources", "uri", "resources/read"}, {"prompts/list", "prompts", "name", "prompts/get"},
	} {
		listed, err := d.ask(kind.list, e2e.Obj{})
		if err != nil {
			return err
		}
		for _, item := range e2e.Each(listed, kind.member) {
			if strings.HasPrefix(e2e.Str(item, "uri"), "goblin://") {
				continue
			}
			params := e2e.Obj{kind.key: e2e.Str(item, kind.key)}
			if kind.use == "prompts/get" {
				args := e2e.Obj{}
				for _, a := range e2e.Each(item, "arguments") {
					args[e2e.Str(a, "name")] = "x"
				}
				params["arguments"] = args
			}
			if _, err := d.ask(kind.use, params); err != nil {
				return err
			}
		}
	}
	return nil
}

// calls returns the calls that the scenario wants, otherwise one call per tool. A tool
// that takes a schema gets the schema of the first tool.
func calls(tools []json.RawMessage) (all []e2e.Obj) {
	wanted := e2e.Each(json.RawMessage(os.Getenv("MCP_CONFORMANCE_CONTEXT")), "toolCalls")
	for _, c := range wanted {
		all = append(all, e2e.Obj{"name": "s_" + e2e.Str(c, "name"), "arguments": e2e.At(c, "arguments")})
	}
	if len(wanted) > 0 {
		return all
	}
	for _, tool := range tools {
		args := e2e.Obj{}
		var properties map[string]json.RawMessage
		_ = json.Unmarshal(e2e.At(tool, "inputSchema", "properties"), &properties)
		for name, p := range properties {
			switch e2e.Str(p, "type") {
			case "number", "integer":
				args[name] = 5
			case "boolean":
				args[name] = true
			case "string":
				args[name] = "x"
			}
			if name == "schema" {
				args[name] = e2e.At(tools[0], "inputSchema")
				if e2e.Str(tools[0], "name") == e2e.Str(tool, "name") {
					args[name] = e2e.At(tools[len(tools)-1], "inputSchema")
				}
			}
		}
		all = append(all, e2e.Obj{"name": e2e.Str(tool, "name"), "arguments": args})
	}
	return all
}
