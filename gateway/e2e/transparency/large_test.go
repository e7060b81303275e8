//go:build e2e

package transparency

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// largeReply returns a unique answer of about that size with all parts of a result.
func largeReply(method, revision string, number, size int) string {
	text := fmt.Sprintf(`%d é 日本 \u00e9 \ud83d\ude00 \" \\ <&> `, number)
	texts := strings.Repeat(text, size/len(text)/2)
	link := fmt.Sprintf(`{"type":"resource_link","uri":"x:%d","name":"r"}`, number)
	embedded := fmt.Sprintf(`{"type":"resource","resource":{"text":"%s","uri":"x:///%d"}}`, texts, number)
	tokens := strings.Repeat(fmt.Sprintf(`{"n":[%d,-0.0,1e400,true,null],"s":""}, `, number), size/80)
	members := map[string]string{
		"tools/call":     `"content":[` + embedded + `,` + link + `,{"type":"text","text":"` + texts + `"},` + link + `],"structuredContent":{"uri":"x:1","rows":[` + tokens + `[]]}`,
		"prompts/get":    `"messages":[{"role":"user","content":` + embedded + `},{"role":"user","content":{"type":"text","text":"` + texts + `"}}]`,
		"resources/read": `"contents":[{"text":"` + texts + `","uri":"x:1"},{"uri":"x:1","blob":"` + strings.Repeat("A", size/2) + `"}],"_meta":{"rows":[` + tokens + `[]]}`,
	}[method]
	if revision == "modern" {
		members += `,"resultType":"complete"`
	}
	return `{"result":{` + members + `}}`
}

// Large messages are checked while they arrive, sent in parts, and release their memory.
// With many in flight, none is mixed with another.
func TestLargeMessagesAreThoseOfTheServerAlone(t *testing.T) {
	methods := []string{"tools/call", "prompts/get", "resources/read"}
	everyRoute(t, func(t *testing.T, r route) {
		r.open(t)
		const calls = 9
		params := func(i int, name string) string {
			member := map[string]string{"resources/read": "uri"}[methods[i%3]]
			if member == "" {
				member = "name"
			}
			return fmt.Sprintf(`{%q:%q,"seq":%d,"reply":%s,"_meta":{"progressToken":"p"}}`, member, name, i,
				largeReply(methods[i%3], r.server, i, 1000<<i))
		}
		for round := range 2 {
			var ids []string
			for i := range calls {
				ids = append(ids, send(r.through, methods[i%3], params(i, transparentMethods[methods[i%3]].there)))
			}
			for i, id := range ids {
				through := r.through.End(id)
				direct := put(r.bare, methods[i%3], params(i, transparentMethods[methods[i%3]].here))
				want, got := r.undo(methods[i%3], direct, ""), r.undo(methods[i%3], through, "mcp://b/")
				require.True(t, want == got, "round %d, %s %d:\n%.300s\n%.300s", round, methods[i%3], i, want, got)
			}
		}
	})
}

// Pages of many entries are sent in parts.
func TestLargePagesListAllOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Obj{}
	generate := e2e.Obj{}
	for _, kind := range listedKinds {
		generate[kind] = 2500
	}
	script["generate"] = generate
	w.Backend("a", script)
	w.Backend("a-b", script)
	clients := map[string]*e2e.Client{"socket": w.Join(), "modern": w.Socket().Stateless(), "http": w.Served().Client(false)}
	for _, kind := range listedKinds {
		var want []string
		for name, c := range clients {
			m := c.Request(e2e.ListMethod(kind), e2e.Obj{})
			require.Len(t, e2e.Each(m.Result, e2e.Member(kind)), 1000, name)
			require.Equal(t, name == "modern", e2e.At(m.Result, "resultType") != nil)
			require.Equal(t, name == "modern", e2e.At(m.Result, "_meta", e2e.ProtocolPrefix+"serverInfo") != nil)
			require.True(t, json.Valid([]byte(m.Raw)))
			names := c.Names(kind)
			require.GreaterOrEqual(t, len(names), 5000)
			require.IsIncreasing(t, names)
			if want == nil {
				want = names
			}
			require.Equal(t, want, names, name)
		}
	}
}
