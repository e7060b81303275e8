//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestInteropOddDefinitionsCostNoOtherServerInTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	dir := npm(t)
	old := func(pkg string) (client, stdio string) {
		base := filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), "dist", "esm", "client")
		return filepath.Join(base, "index.js"), filepath.Join(base, "stdio.js")
	}
	current := func(string) (client, stdio string) {
		base := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "client", "dist")
		return filepath.Join(base, "index.mjs"), filepath.Join(base, "stdio.mjs")
	}
	kept := map[string]int{}
	for _, d := range e2e.OddDefinitions {
		if d.Want != "" {
			kept[d.Kind]++
		}
	}
	for name, sdk := range map[string]struct {
		files func(string) (client, stdio string)
		pkg   string
		pin   string
	}{
		"1.9":               {old, "sdk-2024-11-05", ""},
		"1.22":              {old, "sdk-2025-06-18", ""},
		"1.32":              {old, "@modelcontextprotocol/sdk", ""},
		"2.4":               {current, "", ""},
		"2.4 of 2026-07-28": {current, "", "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("odd", e2e.OddServer())
			w.Backend("good", e2e.Filesystem())
			w.Write()
			env := e2e.Obj{}
			for _, kv := range w.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			client, stdio := sdk.files(sdk.pkg)
			spec := filepath.Join(t.TempDir(), "spec.json")
			require.NoError(t, os.WriteFile(spec, e2e.Marshal(e2e.Obj{
				"client": client, "stdio": stdio, "pin": sdk.pin,
				"transport": e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env},
			}), 0o600))
			script, err := filepath.Abs(filepath.Join("testdata", "definitions.mjs"))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, nodeBinary(dir), script, spec)
			cmd.Env = os.Environ()
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			var got struct {
				Tools, Prompts, Resources, Templates []string
				Structured                           json.RawMessage
			}
			require.NoError(t, json.Unmarshal(out, &got))
			require.Subset(t, got.Tools, []string{"good_stat", "good_move"})
			for kind, names := range map[string][]string{"tools": got.Tools, "prompts": got.Prompts, "resources": got.Resources, "templates": got.Templates} {
				odd := 0
				for _, n := range names {
					if strings.Contains(n, "odd") {
						odd++
					}
				}
				require.Equal(t, kept[kind], odd, "%s: %v", kind, names)
			}
			if got.Structured != nil { // older releases omit it
				require.JSONEq(t, `{"a":1}`, string(got.Structured))
			}
		})
	}
}
