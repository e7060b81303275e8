package e2e

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeReply is an answer of about that size, of all that a result is made of,
// which no other is equal to.
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

// Large messages are checked while they arrive, pass in parts, and give their
// memory back for the next ones. With many under way, none becomes another's.
func TestLargeMessagesAreThoseOfTheServerAlone(t *testing.T) {
	t.Parallel()
	methods := []string{"tools/call", "prompts/get", "resources/read"}
	for _, r := range routes {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			r.open(t)
			const calls = 11
			params := func(i int, name string) string {
				member := map[string]string{"resources/read": "uri"}[methods[i%3]]
				if member == "" {
					member = "name"
				}
				return fmt.Sprintf(`{%q:%q,"seq":%d,"reply":%s,"_meta":{"progressToken":"p"}}`, member, name, i,
					largeReply(methods[i%3], r.server, i, 1000<<(i%11)))
			}
			for round := range 2 {
				var ids []string
				for i := range calls {
					ids = append(ids, r.through.send(methods[i%3], params(i, transparentMethods[methods[i%3]].there)))
				}
				for i, id := range ids {
					through := r.through.end(id)
					direct := r.bare.put(methods[i%3], params(i, transparentMethods[methods[i%3]].here))
					want, got := r.undo(methods[i%3], direct, ""), r.undo(methods[i%3], through, "mcp://b/")
					require.True(t, want == got, "round %d, %s %d:\n%.300s\n%.300s", round, methods[i%3], i, want, got)
				}
			}
		})
	}
}

// Pages of many entries go out in parts.
func TestLargePagesListAllOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := obj{}
	generate := obj{}
	for _, kind := range listedKinds {
		generate[kind] = 2500
	}
	script["generate"] = generate
	w.backend("a", script)
	w.backend("a-b", script)
	clients := map[string]*client{"stdio": w.standalone(), "modern": w.pipe("stdio", "--standalone").stateless(), "http": w.serve().client(false)}
	for _, kind := range listedKinds {
		var want []string
		for name, c := range clients {
			m := c.request(listMethod(kind), obj{})
			require.Len(t, each(m.Result, member(kind)), 1000, name)
			require.Equal(t, name == "modern", at(m.Result, "resultType") != nil)
			require.Equal(t, name == "modern", at(m.Result, "_meta", protocolPrefix+"serverInfo") != nil)
			require.True(t, json.Valid([]byte(m.raw)))
			names := c.names(kind)
			require.GreaterOrEqual(t, len(names), 5000)
			require.IsIncreasing(t, names)
			if want == nil {
				want = names
			}
			require.Equal(t, want, names, name)
		}
	}
}

// A catalog of 100,000 entries takes what its entries do, however often it is
// listed: neither what taking it in has needed nor what was sent stays.
func TestMemoryOfALargeCatalog(t *testing.T) {
	if runtime.GOOS != "linux" || racing() {
		t.Skip("needs /proc, and memory that is Goblin's alone")
	}
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"generate": obj{"resources": 100_000}, "pagesize": 1000})
	c := w.standalone()
	for range 3 {
		require.Len(t, c.list("resources"), 100_000)
	}
	eventually(t, "less memory", func() bool {
		now, _ := memory(t, c.prog.cmd.Process.Pid)
		return now <= 143 // 150 MB
	})
}
