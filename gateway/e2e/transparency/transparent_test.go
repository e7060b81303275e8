//go:build e2e

package transparency

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/e2e"
)

// Messages between a server and a client must be the same with and without Goblin. The
// exceptions are the documented renames and the parts that a revision requires per hop.
// The messages are random: -rapid.checks sets their number, and -rapid.seed repeats a
// failure.

// route is one way through Goblin, and the same server without it.
type route struct {
	front, back   string // "stdio" or "http"
	client        string // "legacy" or "modern": the revision of either side
	server        string
	through, bare *e2e.Client
	b, own        *e2e.Backend // behind Goblin, and without it
	seq           int
}

func (r route) String() string {
	return fmt.Sprintf("%s client over %s, %s server over %s", r.client, r.front, r.server, r.back)
}

// allRoutes contain each pair of values of any two of the four dimensions.
var allRoutes = []route{
	{front: "http", client: "legacy", server: "modern", back: "stdio"},
	{front: "http", client: "modern", server: "legacy", back: "http"},
	{front: "stdio", client: "legacy", server: "legacy", back: "http"},
	{front: "stdio", client: "modern", server: "legacy", back: "stdio"},
	{front: "stdio", client: "modern", server: "modern", back: "http"},
}

// routes are the tested routes.
var routes = e2e.Variants(1, allRoutes...)

// everyRoute runs a test over all of them.
func everyRoute(t *testing.T, test func(t *testing.T, r route)) {
	t.Helper()
	t.Parallel()
	for _, r := range routes {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			test(t, r)
		})
	}
}

// open starts the processes of the route. The server sends the answers that requests
// contain.
func (r *route) open(t *testing.T) {
	t.Helper()
	on, reply := e2e.Obj{}, e2e.Actions(e2e.Do("reply"))
	for method := range transparentMethods {
		on[method] = reply
	}
	script := e2e.Obj{"on": on}
	for _, kind := range listedKinds {
		script[kind] = []e2e.Obj{constant[kind]}
	}
	r.start(e2e.NewWorld(t), script)
	alone := e2e.NewWorld(t)
	own, path := alone.Fake("b", script)
	r.own, r.bare = own, alone.PipeTo(e2e.TestServer, path)
	r.greet(r.bare, r.server)
}

// start starts Goblin in front of a server of that script, and its client.
func (r *route) start(w *e2e.World, script e2e.Obj) {
	w.T.Helper()
	if r.server == "modern" {
		script["era"] = "modern"
	}
	if r.back == "http" {
		r.b = w.Remote("b", "/mcp", script)
	} else {
		r.b = w.Backend("b", script)
	}
	if r.front == "http" {
		r.through = w.Serve().RawClient()
	} else {
		r.through = w.Pipe("stdio", "--standalone")
	}
	r.greet(r.through, r.client)
	if r.front == "http" && r.client == "legacy" {
		r.through.Listen()
	}
}

func (r *route) greet(c *e2e.Client, revision string) {
	if revision == "legacy" {
		c.Init()
		return
	}
	c.Modern = true
	if c.Web != nil {
		c.Web.Stateless = true
	}
}

// envelope contains the members of every request of 2026-07-28.
const envelope = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}},` +
	`"io.modelcontextprotocol/logLevel":"info"`

// put sends unchanged params and waits for the answer.
func put(c *e2e.Client, method, params string) e2e.Message {
	c.T.Helper()
	id := send(c, method, params)
	m := c.End(id)
	c.Update(func() { delete(c.Replies, id) })
	return m
}

// send sends unchanged params, with the envelope if the client needs it.
func send(c *e2e.Client, method, params string) (id string) {
	if c.Modern {
		tree := parseTree([]byte(params))
		meta := tree.at("_meta")
		if meta == nil {
			meta = &jsonTree{text: "{"}
			tree.names, tree.items = append(tree.names, `"_meta"`), append(tree.items, meta)
		}
		more := parseTree([]byte("{" + envelope + "}"))
		for i, name := range more.names {
			if !slices.Contains(meta.names, name) {
				meta.names, meta.items = append(meta.names, name), append(meta.items, more.items[i])
			}
		}
		params = strings.ReplaceAll(tree.String(), ",\n", ", ")
	}
	c.Update(func() { c.LastID++; id = fmt.Sprint(c.LastID) })
	c.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// target is the placeholder for the requested name in drawn params.
const target = "\x00"

// request draws the params of a request.
func (o odd) request(method, notes, reply string, seq int) string {
	token := o.of(`"p"`, "7", "9007199254740993", `""`, `"\u00e9<"`)
	meta := o.object([2]string{"progressToken", token}, [2]string{"traceparent", o.maybe(o.text)}, [2]string{"baggage", o.maybe(o.any)})
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "completion/complete": "ref"}[method]
	return o.object([2]string{member, target}, [2]string{"seq", fmt.Sprint(seq)}, [2]string{"reply", reply},
		[2]string{"notes", notes}, [2]string{"arguments", o.maybe(func() string { return o.object() })}, [2]string{"argument", o.maybe(o.any)},
		[2]string{"context", o.maybe(o.any)}, [2]string{"_meta", meta})
}

// told returns the params that a server received in the request with that number, without
// what the hop adds.
func (r *route) told(b *e2e.Backend, seq int) *jsonTree {
	var params json.RawMessage
	b.Wait(fmt.Sprintf("request %d", seq), func() bool {
		for _, e := range slices.Backward(b.Events) {
			if e.Ev == "recv" && string(e2e.At(e.Msg, "params", "seq")) == fmt.Sprint(seq) {
				params = e2e.At(e.Msg, "params")
				return true
			}
		}
		return false
	})
	b.Update(func() { b.Events = nil })
	tree := parseTree(params)
	withoutEnvelope(tree)
	require.NotNil(b.T, tree.at("_meta", "progressToken"))
	tree.at("_meta").drop("progressToken") // each hop has its own
	return tree
}

func withoutEnvelope(tree *jsonTree) {
	meta := tree.at("_meta")
	for _, key := range []string{"protocolVersion", "clientCapabilities", "clientInfo", "logLevel", "serverInfo"} {
		if meta != nil {
			meta.drop(e2e.ProtocolPrefix + key)
		}
	}
	if meta != nil && len(meta.items) == 0 {
		tree.drop("_meta")
	}
}

// undo reverses the renames of URIs, and removes the additions of a revision.
func (r *route) undo(method string, m e2e.Message, prefix string) string {
	if m.Error != nil {
		tree := parseTree(m.Error)
		tree.at("data", "uri").original(prefix)
		if code := tree.at("code"); r.client == "legacy" && r.server == "modern" && code.text == "-32002" {
			code.text = "-32602" // both revisions' code for an unknown resource
		}
		return "error " + tree.String()
	}
	tree := parseTree(m.Result)
	if kind := tree.at("resultType"); kind != nil && kind.text == `"input_required"` {
		withoutEnvelope(tree)
		return "questions " + tree.String() // nothing in them is renamed
	}
	if r.client == "modern" || r.server == "modern" {
		for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
			tree.drop(name)
		}
		withoutEnvelope(tree)
	}
	var blocks []*jsonTree
	switch method {
	case "tools/call":
		tree.at("_meta", "ui", "resourceUri").original(prefix)
		blocks = tree.at("content").elements()
	case "prompts/get":
		for _, each := range tree.at("messages").elements() {
			if content := each.at("content"); content != nil {
				blocks = append(append(blocks, content), content.elements()...)
			}
		}
	case "resources/read":
		for _, each := range tree.at("contents").elements() {
			each.at("uri").original(prefix)
		}
	}
	for _, block := range blocks {
		if kind := block.at("type"); kind != nil {
			switch e2e.Str([]byte(kind.text)) {
			case "resource_link":
				block.at("uri").original(prefix)
			case "resource":
				block.at("resource", "uri").original(prefix)
			}
		}
	}
	return "result " + tree.String()
}

var transparentMethods = map[string]struct{ here, there string }{
	"tools/call":          {"t", "b_t"},
	"prompts/get":         {"p", "b/p"},
	"resources/read":      {"x:1", "mcp://b/x:1"},
	"completion/complete": {"p", "b/p"},
}

// said returns the notifications during a request, in order and before its answer. URIs
// lose a prefix, as names in answers do.
func said(c *e2e.Client, answer e2e.Message, prefix string) (all []string) {
	c.Update(func() {
		for _, n := range c.Notes {
			if !strings.HasSuffix(n.Method, "list_changed") {
				params := parseTree(n.Params)
				if strings.HasPrefix(n.Method, "notifications/vendor/") {
					params.at("uri").original(prefix)
				}
				all = append(all, fmt.Sprintf("%s %v %s", n.Method, n.Seq < answer.Seq && n.Via == answer.Via, params))
			}
		}
		c.Notes = nil
	})
	return all
}

// constant are the entries that requests use.
var constant = map[string]e2e.Obj{"tools": e2e.Tool("t"), "prompts": e2e.Prompt("p"), "templates": e2e.Template("x:{a}"), "resources": e2e.Resource("x:1")}

// exchange draws one request and its answer and compares both.
func (r *route) exchange(t *rapid.T) {
	method := rapid.SampledFrom([]string{"tools/call", "prompts/get", "resources/read", "completion/complete"}).Draw(t, "method")
	names := transparentMethods[method]
	r.seq++
	reply := drawn(t, "reply", func(o odd) string {
		return o.reply(method, r.server == "modern", r.server == "modern" && r.client == "modern")
	})
	notes := drawn(t, "notes", odd.notes)
	request := drawn(t, "params", func(o odd) string { return o.request(method, notes, reply, r.seq) })
	params := func(name string) string {
		value := string(e2e.Marshal(name))
		if method == "completion/complete" {
			value = `{"vendor":1.0,"type":"ref/prompt","name":` + value + "}"
		}
		return strings.Replace(request, target, value, 1)
	}
	direct := put(r.bare, method, params(names.here))
	through := put(r.through, method, params(names.there))
	require.Equal(t, r.undo(method, direct, ""), r.undo(method, through, "mcp://b/"), "%s: the answer to %s", r, method)
	require.Equal(t, said(r.bare, direct, ""), said(r.through, through, "mcp://b/"), "%s: the notifications during %s", r, method)
	require.Equal(t, r.told(r.own, r.seq).String(), r.told(r.b, r.seq).String(), "%s: the params of %s", r, method)
}

// listing returns a client's list of a kind: the definitions by their own names. Their
// names lose the prefix, and the URIs in them lose links.
func listing(c *e2e.Client, kind, prefix, links string) map[string]string {
	c.T.Helper()
	key := map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}[kind]
	out := map[string]string{}
	for _, raw := range e2e.Each(put(c, e2e.ListMethod(kind), "{}").Result, e2e.Member(kind)) {
		tree := parseTree(raw)
		tree.at(key).original(prefix)
		if kind == "tools" {
			for _, path := range [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}} {
				tree.at(path...).original(links)
			}
		}
		out[tree.at(key).text] = tree.String()
	}
	delete(out, `"goblin://servers"`) // Goblin's own
	return out
}

// define sets new definitions of every kind on both servers. Each kind has a mark, for
// which the test waits.
func (r *route) define(t *rapid.T) {
	r.seq++
	forms := map[string]string{"tools": `"t%d%s"`, "prompts": `"p%d%s"`, "resources": `"u:%d%s"`, "templates": `"x:///%d%s/{a}"`}
	for _, kind := range listedKinds {
		var entries []json.RawMessage
		for i := range 1 + rapid.IntRange(0, 5).Draw(t, kind) {
			more := ""
			if kind != "tools" { // their names are changed beyond a prefix
				more = rapid.SampledFrom([]string{"", " ", "<é>", `\u00e9`, `\/`, `\ud83d\ude00`, "日本", "'&", "://"}).Draw(t, "name")
			}
			entries = append(entries, json.RawMessage(drawn(t, "definition", func(o odd) string {
				return o.definition(kind, fmt.Sprintf(forms[kind], i, more))
			})))
		}
		entries = append(entries, e2e.Marshal(constant[kind]))
		mark := map[string]e2e.Obj{
			"tools": e2e.Tool(r.mark()), "prompts": e2e.Prompt(r.mark()), "resources": e2e.Resource("x:" + r.mark()), "templates": e2e.Template("x:" + r.mark() + "{a}"),
		}[kind]
		entries = append(entries, e2e.Marshal(mark))
		for _, b := range []*e2e.Backend{r.b, r.own} {
			b.Do(e2e.Do("set", e2e.Obj{"kind": kind, "entries": entries}))
		}
		if kind != "templates" {
			r.b.ListChanged(kind)
		}
	}
}

func (r *route) mark() string { return fmt.Sprintf("mark%d", r.seq) }

// listedKinds end with the kind whose notification also covers the preceding one.
var listedKinds = []string{"tools", "prompts", "templates", "resources"}

var listedPrefixes = map[string]string{"tools": "b_", "prompts": "b/", "resources": "mcp://b/", "templates": "mcp://b/"}

// message draws either all lists, which are slow to change and therefore rare, or an
// exchange.
func (r *route) message(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "lists at 9") == 9 {
		r.definitions(t)
	}
	for range 5 {
		r.exchange(t)
	}
}

func TestMessagesAreThoseOfTheServerAlone(t *testing.T) {
	everyRoute(t, func(t *testing.T, r route) {
		r.open(t)
		rapid.Check(t, r.message)
	})
}

func (r *route) definitions(t *rapid.T) {
	r.define(t)
	for _, kind := range listedKinds {
		prefix := listedPrefixes[kind]
		want, got := listing(r.bare, kind, "", ""), map[string]string{}
		e2e.Eventually(r.through.T, kind+" with "+r.mark(), func() bool {
			got = listing(r.through, kind, prefix, "mcp://b/")
			for name := range got {
				if strings.Contains(name, r.mark()) {
					return true
				}
			}
			return false
		})
		require.Equal(t, want, got, "%s: %s", r, kind)
	}
}

// FuzzTransparent draws from the fuzzer's bytes and cycles through the routes.
func FuzzTransparent(f *testing.F) {
	for i := range routes {
		seed := make([]byte, 64<<10) // enough for a few messages
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(seed)
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		r := allRoutes[int(which)%len(allRoutes)]
		r.open(t)
		rapid.MakeFuzz(r.message)(t, data)
	})
}
