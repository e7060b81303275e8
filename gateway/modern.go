package gateway

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// modernMethods are what stateless requests (2026-07-28) may ask for.
var modernMethods = map[string]method{
	"server/discover":          (*Gateway).discover,
	"tools/list":               lister(registry.Tool, "tools"),
	"prompts/list":             lister(registry.Prompt, "prompts"),
	"resources/list":           lister(registry.Resource, "resources"),
	"resources/templates/list": lister(registry.Template, "resourceTemplates"),
	"tools/call":               (*Gateway).callTool,
	"prompts/get":              (*Gateway).fetchPrompt,
	"resources/read":           (*Gateway).readResource,
	"completion/complete":      (*Gateway).complete,
	"subscriptions/listen":     (*Gateway).listen,
	"tasks/get":                (*Gateway).serveTask,
	"tasks/update":             (*Gateway).serveTask,
	"tasks/cancel":             (*Gateway).serveTask,
}

// cacheable are the methods whose results must carry cache hints (2026-07-28,
// SEP-2549).
var cacheable = map[string]bool{
	"server/discover": true, "tools/list": true, "prompts/list": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

// modern reports whether the request is a stateless one.
func (r *request) modern() bool { return r.Modern() != nil }

// Params hides the exchange's: what a request says to Goblin itself is not
// passed on.
func (r *request) Params() []byte {
	if r.stripped != nil {
		return r.stripped
	}
	return r.Exchange.Params()
}

// strip takes the protocol's own members out of params: those of _meta, and
// the answers to what was asked before, unless those are what the request is
// for. All others stay as they are.
func strip(params []byte, answers bool) []byte {
	if params == nil {
		return nil
	}
	out := append(make([]byte, 0, len(params)), '{')
	for k, v := range rawjson.Members(params) {
		switch {
		case k.Is("_meta") && rawjson.IsObject(v):
			kept := []byte{'{'}
			for name, value := range rawjson.Members(v) {
				if text, _ := rawjson.String(name); !strings.HasPrefix(text, downstream.MetaPrefix) {
					kept = rawjson.AppendMember(kept, name, value)
				}
			}
			if len(kept) > 1 {
				out = rawjson.AppendMember(out, k, append(kept, '}'))
			}
		case !answers && (k.Is("inputResponses") || k.Is("requestState")):
		default:
			out = rawjson.AppendMember(out, k, v)
		}
	}
	return append(out, '}')
}

// serverInfoKey is where results of stateless requests say who answers.
const serverInfoKey = downstream.MetaPrefix + "serverInfo"

// modernResult adds to the edits of a result what a stateless request's must have
// besides: its type, who answers, and how long it may be kept. shape reads the
// result; it may be nil.
func (g *Gateway) modernResult(method string, result []byte, edits []rawjson.Edit, shape *rawjson.Shape) []rawjson.Edit {
	var kind, meta, ttl, scope, info []byte
	empty := true
	for k, v := range shape.Members(result) {
		empty = false
		switch {
		case k.Is("resultType"):
			kind = v
		case k.Is("_meta"):
			meta = v
		case k.Is("ttlMs"):
			ttl = v
		case k.Is("cacheScope"):
			scope = v
		}
	}
	head := make([]byte, 0, 192)
	if kind == nil {
		head = append(head, `"resultType":"complete",`...)
	}
	if cacheable[method] && (kind == nil || string(kind) == `"complete"`) {
		if ttl == nil {
			head = append(head, `"ttlMs":0,`...)
		}
		if scope == nil {
			head = append(head, `"cacheScope":"private",`...)
		}
	}
	own := append([]byte(`"`+serverInfoKey+`":`), g.serverInfo...)
	switch {
	case meta == nil:
		head = append(append(append(head, `"_meta":{`...), own...), `},`...)
	case !rawjson.IsObject(meta):
		edits = append(edits, rawjson.Replace(result, meta, append(append([]byte{'{'}, own...), '}')))
	default:
		bare := true
		for k, v := range rawjson.Members(meta) {
			bare = false
			if k.Is(serverInfoKey) {
				info = v
			}
		}
		at := rawjson.Offset(result, meta) + 1
		switch {
		case info != nil:
			edits = append(edits, rawjson.Replace(result, info, g.serverInfo))
		case bare:
			edits = append(edits, rawjson.Edit{Start: at, End: at, Text: own})
		default:
			edits = append(edits, rawjson.Edit{Start: at, End: at, Text: append(own, ',')})
		}
	}
	if empty {
		head = head[:max(len(head)-1, 0)]
	}
	if len(head) > 0 {
		at := slices.Index(result, '{') + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: head})
	}
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.Start, b.Start) })
	return edits
}

// modernError turns a server's error into one that stateless clients know. uri
// is what the client asked for.
func modernError(raw []byte, uri string) []byte {
	if code, _ := rawjson.Int(rawjson.Get(raw, "code")); code != codeResourceNotFound {
		return raw
	}
	raw = rawjson.SetMember(raw, "code", strconv.AppendInt(nil, jsonrpc.CodeInvalidParams, 10))
	data := rawjson.Get(raw, "data")
	switch {
	case data == nil || string(data) == "null":
		return rawjson.SetMember(raw, "data", rawjson.Object("uri", uri))
	case rawjson.IsObject(data) && rawjson.Get(data, "uri") == nil:
		return rawjson.SetMember(raw, "data", rawjson.SetMember(data, "uri", rawjson.Quote(uri)))
	}
	return raw
}

// discover tells what is served, whatever the backends do.
func (g *Gateway) discover(r *request) {
	result := []byte(`{"supportedVersions":`)
	result = append(result, rawjson.Strings(slices.Concat(downstream.ModernProtocols, legacyRevisions))...)
	result = append(result, `,"capabilities":`...)
	result = append(result, modernCapabilities...)
	result = append(result, `,"instructions":`...)
	result = rawjson.AppendString(result, g.instructions())
	r.reply(append(result, '}'))
}

// met notes who sends stateless requests on a session, for those who look.
func (g *Gateway) met(r *request) {
	if r.client != nil && r.client.met.CompareAndSwap(false, true) && r.Session().Meet(r.Modern()) {
		g.showSession(r.client)
	}
}

// paramHeader marks the arguments in a tool's schema that HTTP clients repeat
// in headers (2026-07-28, SEP-2243).
const paramHeader = "x-mcp-header"

// checkParamHeaders compares the arguments of a call with the headers that
// repeat them, be they the client's or those that the server gets. Readers must
// not differ in what these arguments are.
func checkParamHeaders(r *request, t registry.Target) error {
	if t.Entry == nil || !rawjson.Mentions(t.Entry.JSON, paramHeader) {
		return nil
	}
	tool := &mcp.Tool{RawInputSchema: rawjson.Get(t.Entry.JSON, "inputSchema")}
	var paths [][]string
	for _, b := range mcp.ExtractParamHeaderBindings(tool) {
		paths = append(paths, b.Path)
	}
	if err := members.Paths(paths...).Check(rawjson.Get(r.Params(), "arguments")); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: of the arguments, %v", err)
	}
	m := r.Modern()
	if m == nil || m.Header == nil {
		return nil
	}
	lookup := func(name string) (string, bool) {
		values := m.Header.Values(name)
		return strings.Join(values, ", "), len(values) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(lookup, tool, r.Params()); err != nil {
		return jsonrpc.Errorf(downstream.CodeHeaderMismatch, "Header mismatch: %v", err)
	}
	return nil
}
