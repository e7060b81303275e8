//go:build interop

package interop

import (
	"bytes"
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

// oddBlocks are content blocks that SDKs refuse.
var oddBlocks = []string{
	`"x"`, `null`, `5`, `[]`, `{}`, `{"text":"x"}`, `{"type":null}`, `{"type":"text"}`, `{"type":"text","text":null}`, `{"type":"text","text":{"a":1}}`,
	`{"type":"text","text":"x","annotations":null}`, `{"type":"text","text":"x","annotations":"high","_meta":"m"}`,
	`{"type":"text","text":"x","annotations":{"audience":"user","priority":9,"lastModified":"yesterday"}}`,
	`{"type":"text","text":"x","annotations":{"audience":["system"],"priority":"high","lastModified":null}}`,
	`{"type":"text","text":"x","annotations":{"audience":["user"],"priority":1,"lastModified":"2026-01-02T03:04:05.678+02:00"}}`,
	`{"type":"image","mimeType":"image/png"}`, `{"type":"image","data":"aGk="}`, `{"type":"audio","data":7,"mimeType":"audio/wav"}`,
	`{"type":"resource"}`, `{"type":"resource","resource":"x:1"}`, `{"type":"resource","resource":{"text":"x"}}`, `{"type":"resource","resource":{"uri":"x:1"}}`,
	`{"type":"resource","resource":{"uri":"x:1","text":7,"blob":"aGk="}}`, `{"type":"resource","resource":{"uri":"x:1","text":"x","mimeType":null,"_meta":null}}`,
	`{"type":"resource_link","name":"n"}`, `{"type":"resource_link","uri":"x:1"}`, `{"type":"resource_link","uri":"x:1","name":null}`,
	`{"type":"resource_link","uri":"x:1","name":"n","title":null,"description":null,"mimeType":null,"size":"large","annotations":null,"_meta":null}`,
}

// oddResults are results that SDKs refuse, by method.
func oddResults() map[string][]string {
	all := map[string][]string{
		"tools/call": {
			`{}`, `{"content":null}`, `{"content":"x"}`, `{"content":5}`, `{"content":{"type":"text","text":"x"}}`, `{"content":{"a":1}}`,
			`{"structuredContent":{"a":1}}`, `{"content":[],"structuredContent":null}`, `{"content":[],"structuredContent":"s"}`, `{"content":[],"structuredContent":[1]}`,
			`{"content":[],"isError":"true"}`, `{"content":[],"isError":null}`, `{"content":[],"isError":1}`, `{"content":[],"_meta":null}`, `{"content":[],"_meta":"m"}`,
		},
		"resources/read": {
			`{}`, `{"contents":null}`, `{"contents":"x"}`, `{"contents":{"uri":"x:say","text":"x"}}`, `{"contents":[null,"x",7]}`,
			`{"contents":[{"text":"x"}]}`, `{"contents":[{"uri":null,"blob":"aGk="}]}`, `{"contents":[{"uri":"x:say"}]}`, `{"contents":[{"uri":"x:say","text":null}]}`,
			`{"contents":[{"uri":"x:say","text":{"a":1}}]}`, `{"contents":[{"uri":"x:say","blob":7}]}`, `{"contents":[{"uri":"x:say","text":"x","mimeType":null,"_meta":7}],"_meta":null}`,
		},
		"prompts/get": {
			`{}`, `{"messages":null}`, `{"messages":"x"}`, `{"messages":{"role":"user","content":"x"}}`, `{"messages":[],"description":null,"_meta":null}`,
			`{"messages":[null,"x"]}`, `{"messages":[{}]}`, `{"messages":[{"role":"system","content":"x"}]}`, `{"messages":[{"role":"user","content":null}]}`,
		},
		"completion/complete": {
			`{}`, `{"completion":null}`, `{"completion":["x"]}`, `{"completion":{"values":null}}`, `{"completion":{"values":[1,null]}}`,
			`{"completion":{"values":["x"],"total":"1","hasMore":"true"}}`, `{"completion":{"values":[` + strings.Repeat(`"x",`, 100) + `"x"]}}`,
		},
	}
	for _, block := range oddBlocks {
		all["tools/call"] = append(all["tools/call"], `{"content":[`+block+`]}`)
		all["prompts/get"] = append(all["prompts/get"], `{"messages":[{"role":"user","content":`+block+`}]}`)
	}
	all["prompts/get"] = append(all["prompts/get"], `{"messages":[{"role":"user","content":[`+strings.Join(oddBlocks, ",")+`]}]}`)
	return all
}

func TestInteropOddResultsReachTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	dir := npm(t)
	reply := e2e.Actions(e2e.Do("reply"))
	var asks []e2e.Obj
	for method, results := range oddResults() {
		for _, result := range results {
			params := e2e.Obj{"reply": `{"result":` + result + `}`}
			switch method {
			case "tools/call":
				params["name"] = "b_say"
			case "resources/read":
				params["uri"] = e2e.In("b", "x:say")
			case "prompts/get":
				params["name"] = "b/say"
			default:
				params["ref"], params["argument"] = e2e.Obj{"type": "ref/prompt", "name": "b/say"}, e2e.Obj{"name": "a", "value": ""}
			}
			asks = append(asks, e2e.Obj{"method": method, "params": params})
		}
	}
	for _, sdk := range []struct{ folder, revision string }{
		{"sdk-2024-11-05", ""}, {"sdk-2025-06-18", ""}, {"@modelcontextprotocol/sdk", ""}, {"v2", e2e.Revision}, {"v2", e2e.ModernRevision},
	} {
		t.Run(sdk.folder+" "+sdk.revision, func(t *testing.T) {
			w := e2e.NewWorld(t)
			w.Backend("b", e2e.Obj{
				"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{}, "completions": e2e.Obj{}},
				"tools":        []e2e.Obj{e2e.Tool("say")}, "prompts": []e2e.Obj{e2e.Prompt("say")}, "resources": []e2e.Obj{e2e.Resource("x:say")},
				"on": e2e.Obj{"tools/call": reply, "prompts/get": reply, "resources/read": reply, "completion/complete": reply},
			})
			w.Write()
			env := e2e.Obj{}
			for _, kv := range w.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			spec := filepath.Join(t.TempDir(), "spec.json")
			require.NoError(t, os.WriteFile(spec, e2e.Marshal(e2e.Obj{
				"modules": dir, "sdk": sdk.folder, "revision": sdk.revision, "asks": asks,
				"transport": e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env},
			}), 0o600))
			var failed []string
			for i, answer := range sent(t, nodeBinary(dir), spec) {
				// Links are newer than the oldest of the SDKs.
				if ask := string(e2e.Marshal(asks[i])); answer.Failed != "" && (sdk.folder != "sdk-2024-11-05" || !strings.Contains(ask, "resource_link")) {
					failed = append(failed, ask+": "+answer.Failed[:min(len(answer.Failed), 500)])
				}
			}
			require.Empty(t, failed)
		})
	}
}

// shaped is one answer in the output of shapes.mjs.
type shaped struct{ Failed string }

// sent runs shapes.mjs and returns what it prints.
func sent(t *testing.T, node, spec string) (answers []shaped) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "shapes.mjs"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, spec)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &answers))
	require.NotEmpty(t, answers)
	return answers
}
