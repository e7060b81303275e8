package extensions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/extensions"
	"goblin/registry/rawjson"
)

func TestTheUnionLeavesOutWhatServersDifferIn(t *testing.T) {
	t.Parallel()
	declared := func(server, ext string) extensions.Declared {
		return extensions.Declared{Server: server, Capabilities: []byte(`{"tools":{},"extensions":` + ext + `}`)}
	}
	union, complaints := extensions.Union([]extensions.Declared{
		declared("a", `{"acme/x":{"v":1,"same":{"p":1,"q":[2]},"mine":true},"io.modelcontextprotocol/skills":{}}`),
		declared("b", `{"acme/x":{"v":2,"same":{"q":[2], "p":1}},"other/y":{},"io.modelcontextprotocol/tasks":{},"goblin/z":{}}`),
		declared("c", `{"acme/x":{"v":1},"io.modelcontextprotocol/skills":{"directoryRead":true}}`),
		declared("d", `{"io.modelcontextprotocol/skills":{"directoryRead":false}}`),
		{Server: "e", Capabilities: []byte(`{}`)},
		{Server: "f"},
	})
	require.JSONEq(t, `{"acme/x":{"same":{"p":1,"q":[2]},"mine":true},"other/y":{},"io.modelcontextprotocol/skills":{"directoryRead":true}}`, string(union))
	require.Equal(t, []string{
		`extension "goblin/z" of server "b" dropped: the name is reserved for Goblin`,
		`member "v" of extension "acme/x" dropped: servers "a" and "b" differ`,
	}, sorted(complaints))
	reversed, _ := extensions.Union([]extensions.Declared{
		declared("d", `{"io.modelcontextprotocol/skills":{"directoryRead":false}}`), declared("c", `{"io.modelcontextprotocol/skills":{"directoryRead":true}}`),
	})
	require.JSONEq(t, `{"io.modelcontextprotocol/skills":{"directoryRead":true}}`, string(reversed))

	var log extensions.Complaints
	require.Len(t, log.New(complaints), 2)
	require.Empty(t, log.New(complaints))

	var many []extensions.Declared
	for i := range 10 {
		var all []string
		for j := range 60 {
			all = append(all, fmt.Sprintf(`"x%d/%d":{"a":1}`, i, j))
		}
		many = append(many, declared(fmt.Sprint(i), "{"+strings.Join(all, ",")+"}"))
	}
	union, complaints = extensions.Union(many)
	require.Equal(t, 256, count(union))
	require.Len(t, complaints, 600-256)
}

func extensionsOf(server, ext string) extensions.Declared {
	return extensions.Declared{Server: server, Capabilities: []byte(`{"extensions":` + ext + `}`)}
}

func TestNoServerTakesWhatAnotherDeclares(t *testing.T) {
	t.Parallel()
	const page = `"text/html;profile=mcp-app"`
	good := extensionsOf("good", `{"io.modelcontextprotocol/ui":{"mimeTypes":[`+page+`],"deep":{"a":[1],"b":{"c":true}}}}`)
	for _, row := range []struct {
		lie, mimeTypes, deep string
		complaints           int
	}{
		{`{"mimeTypes":["x"]}`, `[` + page + `,"x"]`, `{"a":[1],"b":{"c":true}}`, 0},
		{`{"mimeTypes":[` + page + `]}`, `[` + page + `]`, `{"a":[1],"b":{"c":true}}`, 0},
		{`{"mimeTypes":"x"}`, `[` + page + `]`, `{"a":[1],"b":{"c":true}}`, 1},
		{`{"deep":null}`, `[` + page + `]`, `{"a":[1],"b":{"c":true}}`, 1},
		{`{"deep":{"b":{"c":false},"d":{"e":"x"}}}`, `[` + page + `]`, `{"a":[1],"b":{},"d":{"e":"x"}}`, 1},
	} {
		bad := extensionsOf("bad", `{"io.modelcontextprotocol/ui":`+row.lie+`}`)
		for _, all := range [][]extensions.Declared{{good, bad}, {bad, good}} {
			union, complaints := extensions.Union(all)
			ui := rawjson.Get(union, extensions.UI)
			var want, got []string
			require.NoError(t, json.Unmarshal([]byte(row.mimeTypes), &want))
			require.NoError(t, json.Unmarshal(rawjson.Get(ui, "mimeTypes"), &got))
			require.ElementsMatch(t, want, got)
			require.JSONEq(t, row.deep, string(rawjson.Get(ui, "deep")))
			require.Len(t, complaints, row.complaints)
		}
	}
	_, complaints := extensions.Union([]extensions.Declared{
		extensionsOf("good", `{"acme/x":{"list":[1],"n":1,"m":1}}`), extensionsOf("bad", `{"acme/x":{"list":{"a":1},"n":2,"m":2}}`),
	})
	require.Equal(t, []string{
		`member "list" of extension "acme/x" of server "bad" dropped: "good" has another type; 2 more of its members dropped`,
	}, complaints)
	deep := strings.Repeat(`{"a":`, 10)
	union, _ := extensions.Union([]extensions.Declared{
		extensionsOf("a", `{"acme/x":`+deep+"[1]"+strings.Repeat("}", 11)), extensionsOf("b", `{"acme/x":`+deep+"[2]"+strings.Repeat("}", 11)),
	})
	require.JSONEq(t, `{"acme/x":{"a":{"a":{"a":{"a":{}}}}}}`, string(union), "nested settings are not read")
}

func TestNoServerTakesTheRoomOfAnothersExtensions(t *testing.T) {
	t.Parallel()
	many := func(server string, n, size int) extensions.Declared {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"com.%s/%d":{"x":%q}`, server, i, strings.Repeat("y", size)))
		}
		return extensionsOf(server, "{"+strings.Join(all, ",")+"}")
	}
	of := func(union []byte, server string) (n int) {
		for k := range rawjson.Members(union) {
			if name, _ := rawjson.String(k); strings.HasPrefix(name, "com."+server+"/") {
				n++
			}
		}
		return n
	}
	// The server "good" is within its share: 256 KiB and 256 extensions, divided by the
	// number of servers.
	for name, row := range map[string]struct{ loud, size, n, goodSize int }{
		"large": {2, 16_200, 60, 1_000},
		"many":  {6, 1, 3, 10_000},
		"both":  {20, 16_200, 12, 900},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []extensions.Declared
			for i := range row.loud {
				all = append(all, many(fmt.Sprintf("loud%d", i), 64, row.size))
			}
			union, complaints := extensions.Union(append(all, many("good", row.n, row.goodSize)))
			require.Equal(t, row.n, of(union, "good"))
			require.LessOrEqual(t, len(union), 260<<10)
			require.Len(t, complaints, row.loud*64+row.n-count(union), "omissions are reported")
			for _, c := range complaints {
				require.NotContains(t, c, "good")
			}
			require.InDelta(t, of(union, "loud0"), of(union, "loud1"), 1, "the rest is shared equally")
		})
	}
}

func sorted(s []string) []string {
	if len(s) == 2 && s[0] > s[1] {
		s[0], s[1] = s[1], s[0]
	}
	return s
}

func count(obj []byte) (n int) {
	for range rawjson.Members(obj) {
		n++
	}
	return n
}

func TestWhatAServerDeclaresIsBounded(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf(`"x/%d":{}`, i))
	}
	kept, complaint := extensions.LimitExtensions([]byte(`{"tools":{},"extensions":{` + strings.Join(all, ",") + `}}`))
	require.Equal(t, 64, count(rawjson.Get(kept, "extensions")))
	require.NotNil(t, rawjson.Get(kept, "tools"))
	require.Contains(t, complaint, "936 extensions dropped")

	kept, complaint = extensions.LimitExtensions([]byte(`{"extensions":{"a/large":{"x":"` + strings.Repeat("y", 10<<20) + `"},"a/b":{},"a/c":7}}`))
	require.JSONEq(t, `{"extensions":{"a/b":{}}}`, string(kept))
	require.Contains(t, complaint, `extension "a/large" and 1 more dropped`)

	const fine = `{"extensions":{"a/b":{"c":[1]}}}`
	kept, complaint = extensions.LimitExtensions([]byte(fine))
	require.Equal(t, fine, string(kept))
	require.Empty(t, complaint)
}

func TestWhatAClientDeclares(t *testing.T) {
	t.Parallel()
	for caps, want := range map[string]struct{ of, beyond string }{
		`{}`: {}, `{"extensions":{}}`: {}, `{"extensions":[]}`: {}, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`: {},
		`{"extensions":{"io.modelcontextprotocol/ui":{"m":1}}}`:                         {`{"io.modelcontextprotocol/ui":{"m":1}}`, ``},
		`{"extensions":{"acme/x":{"n":1}}}`:                                             {`{"acme/x":{"n":1}}`, `{"acme/x":{"n":1},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`},
		`{"extensions":{"io.modelcontextprotocol/ui":{"m":1},"acme/x":{}}}`:             {`{"io.modelcontextprotocol/ui":{"m":1},"acme/x":{}}`, `{"io.modelcontextprotocol/ui":{"m":1},"acme/x":{}}`},
		`{"extensions":{"io.modelcontextprotocol/tasks":{},"acme/x":{}},"sampling":{}}`: {`{"acme/x":{}}`, `{"acme/x":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`},
	} {
		for _, got := range []struct {
			is   []byte
			want string
		}{{extensions.ServerCapabilities([]byte(caps)), want.of}, {extensions.ExtraCapabilities([]byte(caps)), want.beyond}} {
			if got.want == "" {
				require.Nil(t, got.is, caps)
			} else {
				require.JSONEq(t, got.want, string(got.is), caps)
			}
		}
	}
	client := []byte(`{"extensions":{"acme/x":{},"io.modelcontextprotocol/tasks":{}}}`)
	require.True(t, extensions.Shared(client, []byte(`{"extensions":{"acme/x":{"a":1}}}`)))
	require.False(t, extensions.Shared(client, []byte(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)))
	require.False(t, extensions.Shared(client, []byte(`{}`)))
}

func TestRequestsGoToTheOwnerOfWhatTheyName(t *testing.T) {
	t.Parallel()
	several := errors.New("several")
	owner := func(member, value string) (string, string, error) {
		switch value {
		case "both":
			return "", "", several
		case "none":
			return "", "", nil
		}
		server, own, _ := strings.Cut(value, " ")
		return server, own, nil
	}
	for params, want := range map[string]string{
		`{"uri":"s u","x":"s y"}`:                       `s {"uri":"u","x":"s y"}`,
		`{"taskId":"s t","name":"s n"}`:                 `s {"taskId":"t","name":"n"}`,
		`{"name":"o n","uri":"s u"}`:                    `s {"name":"o n","uri":"u"}`,
		`{"uri":"none","name":"o n"}`:                   `o {"uri":"none","name":"n"}`,
		`{"uri":7,"name":{"a":1},"taskId":"o i"}`:       `o {"uri":7,"name":{"a":1},"taskId":"i"}`,
		`{"uri":"s u","name":"both"}`:                   `s {"uri":"u","name":"both"}`,
		`{"other":"s u"}`:                               ` {"other":"s u"}`,
		`{"uri":"` + strings.Repeat("s", 70<<10) + `"}`: ` {"uri":"` + strings.Repeat("s", 70<<10) + `"}`,
	} {
		server, edits, err := extensions.Route([]byte(params), owner)
		require.NoError(t, err)
		require.Equal(t, want, server+" "+string(rawjson.Splice([]byte(params), edits...)))
	}
	_, _, err := extensions.Route([]byte(`{"uri":"both","name":"s n"}`), owner)
	require.ErrorIs(t, err, several)
}
