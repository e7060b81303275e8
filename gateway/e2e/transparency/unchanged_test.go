//go:build e2e

package transparency

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// oddMembers are members that a server may put anywhere, and whose text must survive.
const oddMembers = `"x.vendor/k":{"big":9007199254740993,"huge":1e400,"zero":-0,"one":1.0,"text":"\u00e9<&>\/","twice":1,"twice":2,"none":null,"empty":[{},[],""]}`

// unchanged are definitions and results with such members. %s stands for the
// name or URI that changes.
var unchanged = struct {
	tool, prompt, resource, template string
	call, get, read                  string
}{
	tool: `{"name":"%s","title":"T","icons":[{"src":"https://x/i.png","sizes":["48x48"],` + oddMembers + `}],"description":"d",` +
		`"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"allOf":[true]},` +
		`"outputSchema":{"type":["array","null"],"items":{"minimum":1e400}},"annotations":{"readOnlyHint":true,` + oddMembers + `},` +
		`"execution":{"taskSupport":"optional",` + oddMembers + `},"_meta":{` + oddMembers + `},` + oddMembers + `}`,
	prompt:   `{"name":"%s","arguments":[{"name":"a","required":false,` + oddMembers + `}],"icons":[],"_meta":{` + oddMembers + `},` + oddMembers + `}`,
	resource: `{"uri":"%s","name":"r","size":9007199254740993,"annotations":{"priority":0.10,"audience":["user"]},"icons":[{"src":"data:,"}],"_meta":{` + oddMembers + `},` + oddMembers + `}`,
	template: `{"uriTemplate":"%s","name":"t","icons":[],"_meta":{` + oddMembers + `},` + oddMembers + `}`,
	call: `"content":[{"type":"hologram","data":1e400,` + oddMembers + `},{"type":"text","text":"a","annotations":{"priority":1.0},"_meta":{` + oddMembers + `}},` +
		`{"type":"resource_link","uri":"%s","name":"r","icons":[],` + oddMembers + `}],"structuredContent":{"b":[9007199254740993,1e400],"a":1,"a":2},"isError":false,` + oddMembers,
	get:  `"description":"d","messages":[{"role":"user","content":{"type":"hologram",` + oddMembers + `}},{"role":"assistant","content":{"type":"resource","resource":{"uri":"%s","text":"t","_meta":{` + oddMembers + `}}}}],` + oddMembers,
	read: `"contents":[{"uri":"%s","mimeType":"x/y","text":"t","_meta":{` + oddMembers + `},` + oddMembers + `},{"uri":"%s","blob":"AA=="}],` + oddMembers,
}

func naming(text, name string) string { return strings.ReplaceAll(text, "%s", name) }

func TestDefinitionsAndResultsAreUnchangedInEveryEra(t *testing.T) {
	t.Parallel()
	raw := func(text, name string) json.RawMessage { return json.RawMessage(naming(text, name)) }
	w := e2e.NewWorld(t)
	for _, kind := range []string{"stdio", "http"} {
		for _, era := range []string{"legacy", "modern"} {
			w.TaskBackend(era+"-"+kind, kind, e2e.Obj{
				"era":       strings.TrimPrefix(era, "legacy"),
				"tools":     []json.RawMessage{raw(unchanged.tool, "t")},
				"prompts":   []json.RawMessage{raw(unchanged.prompt, "p")},
				"resources": []json.RawMessage{raw(unchanged.resource, "x:1")},
				"templates": []json.RawMessage{raw(unchanged.template, "x:///{a}")},
				"calls":     e2e.Obj{"t": raw("{"+unchanged.call+"}", "x:1")},
				"gets":      e2e.Obj{"p": raw("{"+unchanged.get+"}", "x:1")},
				"reads":     e2e.Obj{"x:1": raw("{"+unchanged.read+"}", "x:1")},
			})
		}
	}
	// Clients up to 2025-11-25 refuse an output schema that is not that of an object.
	legacyTool := regexp.MustCompile(`"outputSchema":.*?\}\},`).ReplaceAllString(unchanged.tool, "")
	for _, c := range []*e2e.Client{w.Join(), w.Socket().Stateless()} {
		tool := legacyTool
		if c.Modern {
			tool = unchanged.tool
		}
		lists := map[string]string{}
		for _, kind := range listedKinds {
			for _, entry := range c.List(kind) {
				lists[kind] += string(entry) + "\n"
			}
		}
		for _, b := range w.Backends {
			uri := e2e.In(b.Name, "x:1")
			for kind, want := range map[string]string{
				"tools": naming(tool, b.Name+"_t"), "prompts": naming(unchanged.prompt, b.Name+"/p"),
				"resources": naming(unchanged.resource, uri), "templates": naming(unchanged.template, e2e.In(b.Name, "x:///{a}")),
			} {
				require.Contains(t, lists[kind], want+"\n", b.Name)
			}
			for _, ask := range []struct {
				method, want string
				params       e2e.Obj
			}{
				{"tools/call", unchanged.call, e2e.Obj{"name": b.Name + "_t"}},
				{"prompts/get", unchanged.get, e2e.Obj{"name": b.Name + "/p"}},
				{"resources/read", unchanged.read, e2e.Obj{"uri": uri}},
			} {
				got := c.Request(ask.method, ask.params).Raw
				for _, member := range splitMembers(naming("{"+ask.want+"}", uri)) {
					require.Contains(t, got, member, "%s of %s", ask.method, b.Name)
				}
				require.Equal(t, c.Modern, strings.Contains(got, `"resultType"`), "members of the client's revision")
			}
		}
	}
}

// splitMembers returns the members of an object as unchanged text.
func splitMembers(text string) (members []string) {
	depth, from, quoted := 0, 1, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '\\':
			i++
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '{' || ch == '[':
			depth++
		case ch == '}' || ch == ']':
			depth--
		}
		if !quoted && (depth == 1 && text[i] == ',' || depth == 0) {
			members = append(members, text[from:i])
			from = i + 1
		}
	}
	return members
}
