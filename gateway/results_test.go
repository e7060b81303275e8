package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway"
	"goblin/gateway/memlimit"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// content is the content of a result, as a client decodes it.
type content []struct{ Type, Text, URI string }

func readResult(t require.TestingT, result []byte) (c struct {
	Content  content
	Contents content
	Meta     map[string]string `json:"_meta"`
},
) {
	require.NoError(t, json.Unmarshal(result, &c), "%s", result)
	return c
}

func texts(parts ...string) []byte {
	var blocks []string
	for _, p := range parts {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s}`, rawjson.Quote(p)))
	}
	return []byte(`{"content":[` + strings.Join(blocks, ",") + `]}`)
}

// readAll reads all pages of the omitted part of a result.
func readAll(t require.TestingT, s *gateway.ResultStore, owner, uri string, most int) string {
	var all strings.Builder
	for uri != "" {
		result, err := s.Read(owner, uri)
		require.NoError(t, err)
		page := readResult(t, result)
		require.Equal(t, uri, page.Contents[0].URI)
		require.LessOrEqual(t, len(page.Contents[0].Text), most)
		all.WriteString(page.Contents[0].Text)
		next := page.Meta["goblin/next"]
		require.Len(t, page.Contents, map[bool]int{true: 1, false: 2}[next == ""])
		if next != "" {
			require.Contains(t, page.Contents[1].Text, next)
		}
		uri = next
	}
	return all.String()
}

func TestLongResultsAreCutAndTheRestIsRead(t *testing.T) {
	t.Parallel()
	const limit = gateway.MinLimit
	long := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		result string
		raised int
		whole  bool
	}{
		"short":                               {result: string(texts(long[:limit])), whole: true},
		"much that is no text":                {result: `{"content":[{"type":"image","data":"` + long + `"}],"structuredContent":{"a":"` + long + `"}}`, whole: true},
		"escapes count as one":                {result: `{"content":[{"type":"text","text":"` + strings.Repeat(`\u0041`, limit) + `"}]}`, whole: true},
		"raised by the tool":                  {result: string(texts(long)), raised: len(long), whole: true},
		"raised, in characters":               {result: string(texts(strings.Repeat("ä", 3000))), raised: 3000, whole: true},
		"raised too little":                   {result: string(texts(long)), raised: 5000},
		"long":                                {result: string(texts(long))},
		"many short":                          {result: string(texts(strings.Split(strings.Repeat("abcdefgh ", 1000), " ")...))},
		"what is no text stays":               {result: `{"content":[{"type":"image","data":"AA=="},{"type":"text","text":"` + long + `","annotations":{"priority":1}},{"type":"image","data":"AB=="}],"structuredContent":{"a":"` + long + `"},"isError":true,"vendor":1.50}`},
		"too long by a part of one character": {result: string(texts(long[:limit/2-1] + "৺" + long[:limit/2-1])), whole: true},
		"a content that is no list":           {result: `{"content":"` + long + `"}`, whole: true},
	} {
		s := gateway.NewResultStore(nil)
		got := s.Truncate("tools/call", []byte(c.result), nil, gateway.ResultLimit{Limit: limit, RequestedBy: c.raised, Owner: "me", Tool: "t", Links: true})
		if c.whole {
			require.Nil(t, got, name)
			continue
		}
		before, after := readResult(t, []byte(c.result)).Content, readResult(t, got).Content
		require.Equal(t, "resource_link", after[len(after)-1].Type, name)
		uri := after[len(after)-1].URI
		require.Equal(t, 1, strings.Count(string(got), "[Goblin removed "), name)
		kept, note := 0, 0
		for i, block := range after {
			if strings.HasPrefix(block.Text, "[Goblin removed ") {
				require.Contains(t, block.Text, uri, name)
				note = i
				continue
			}
			kept += len(block.Text)
		}
		require.Equal(t, max(limit, c.raised), kept, name)
		for _, left := range []string{"image", "structuredContent", "isError", `"vendor":1.50`} {
			require.Equal(t, strings.Count(c.result, left), strings.Count(string(got), left), name)
		}
		if len(before) == 1 {
			require.Equal(t, before[0].Text, after[note-1].Text+readAll(t, s, "me", uri, limit)+after[note+1].Text, name)
		}
	}
}

// The cut result and its remaining part are the whole result. Cuts are between
// characters.
func TestNothingIsLostOfLongResults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 20, 60).Draw(t, "text"), rapid.IntRange(1, 400).Draw(t, "times"))
		limit := rapid.IntRange(gateway.MinLimit, 3000).Draw(t, "limit")
		s := gateway.NewResultStore(nil)
		bound := gateway.ResultLimit{Limit: limit, Links: true}
		got := s.Truncate("tools/call", texts(text), nil, bound)
		task := s.Truncate("tasks/get", []byte(`{"taskId":"1","result":`+string(texts(text))+`}`), nil, bound)
		require.Equal(t, got == nil, task == nil)
		if len(text) <= limit || got == nil {
			require.Nil(t, got)
			require.Less(t, len(text), limit+utf8.UTFMax, "the excess is a part of one character")
			return
		}
		require.Equal(t, readResult(t, got).Content[0], readResult(t, rawjson.Get(task, "result")).Content[0])
		require.True(t, gateway.CanTruncate("tools/call", texts(text)))
		after := readResult(t, got).Content
		require.Equal(t, text, after[0].Text+readAll(t, s, "", after[3].URI, limit)+after[2].Text)
		require.LessOrEqual(t, len(after[0].Text)+len(after[2].Text), limit+8)
	})
}

func TestURIsInLongResultsAreThoseOfClients(t *testing.T) {
	t.Parallel()
	result := []byte(`{"content":[{"type":"resource_link","uri":"x:1","name":"n"},{"type":"text","text":"` + strings.Repeat("a", 3000) + `"}]}`)
	at := strings.Index(string(result), `"x:1"`)
	edit := rawjson.Edit{Start: at, End: at + 5, Text: []byte(`"mcp://a/x:1"`)}
	got := gateway.NewResultStore(nil).Truncate("tools/call", result, []rawjson.Edit{edit}, gateway.ResultLimit{Limit: gateway.MinLimit})
	require.Equal(t, "mcp://a/x:1", readResult(t, got).Content[0].URI)
	require.Equal(t, 1, strings.Count(string(got), "resource_link"), "older revisions have none")
}

func TestTheRestOfSeveralTextsHasThemInLinesAndItsPagesAreNamed(t *testing.T) {
	t.Parallel()
	const limit = gateway.MinLimit
	s := gateway.NewResultStore(nil)
	a, b := strings.Repeat("a", 1000), strings.Repeat("b", 1500)
	got := readResult(t, s.Truncate("tools/call", texts(a, b), nil, gateway.ResultLimit{Limit: limit, Links: true})).Content
	require.Equal(t, a[:limit/2], got[0].Text)
	uri := got[3].URI
	require.Contains(t, got[1].Text, "read the resource "+uri+" and then "+uri+"/2, within an hour.]")
	require.Equal(t, b[:limit/2], got[2].Text)
	require.Equal(t, a[limit/2:]+"\n"+b[limit/2:], readAll(t, s, "", uri, limit))
}

func TestWhoMayReadTheRestOfAResult(t *testing.T) {
	t.Parallel()
	s := gateway.NewResultStore(nil)
	cut := func(owner string) string {
		c := readResult(t, s.Truncate("tools/call", texts(strings.Repeat("x", 5000)), nil, gateway.ResultLimit{Limit: gateway.MinLimit, Owner: owner, Links: true})).Content
		return c[len(c)-1].URI
	}
	fails := func(owner, uri, why string) {
		t.Helper()
		_, err := s.Read(owner, uri)
		var unknown *registry.NotFoundError
		require.ErrorAs(t, err, &unknown)
		require.Contains(t, err.Error(), why)
	}
	mine, theirs, anybodys := cut("me"), cut("them"), cut("")
	for _, uri := range []string{mine, mine + "/2", mine + "/4", anybodys} {
		_, err := s.Read("me", uri)
		require.NoError(t, err)
	}
	fails("me", theirs, "No such result")
	fails("", theirs, "No such result")
	for _, odd := range []string{"/0", "/5", "/-1", "/01", "/1/", "/", "/x", "/99999999999999999999"} {
		fails("me", mine+odd, "The result has 4 pages")
	}
	for _, odd := range []string{"goblin://results/", "goblin://results/x", mine[:len(mine)-1], strings.ToUpper(mine)} {
		fails("me", odd, "No such result")
	}
	s.Drop("me")
	fails("me", mine, "No such result")
	_, err := s.Read("them", theirs)
	require.NoError(t, err)
}

func TestWhatIsKeptOfResultsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gateway.NewResultStore(nil)
		cut := func(owner string, size int) (uri, note string) {
			c := readResult(t, s.Truncate("tools/call", texts(strings.Repeat("x", size)), nil, gateway.ResultLimit{Limit: gateway.MinLimit, Owner: owner, Links: true})).Content
			return c[len(c)-1].URI, c[1].Text
		}
		reads := func(owner, uri string) bool {
			_, err := s.Read(owner, uri)
			return err == nil
		}
		first, _ := cut("me", 2000)
		other, _ := cut("them", 2000)
		for range 256 {
			cut("me", 2000)
		}
		require.False(t, reads("me", first), "the session's oldest is evicted")
		require.True(t, reads("them", other))
		second, note := cut("me", 20<<20)
		require.Contains(t, note, "; the last 4193280 bytes could not be stored")
		_, _ = cut("me", 20<<20)
		require.True(t, reads("me", second))
		_, _ = cut("me", 20<<20)
		require.False(t, reads("me", second), "the oldest bytes are evicted, too")

		time.Sleep(gateway.ResultLifetime - time.Minute)
		require.True(t, reads("them", other))
		time.Sleep(gateway.ResultLifetime - time.Minute)
		require.True(t, reads("them", other), "recently read ones are kept")
		time.Sleep(gateway.ResultLifetime + time.Second)
		require.False(t, reads("them", other))
	})
	many := gateway.NewResultStore(nil)
	long := texts(strings.Repeat("x", 2000))
	var oldest string
	for i := range 1025 {
		c := readResult(t, many.Truncate("tools/call", long, nil, gateway.ResultLimit{Limit: gateway.MinLimit, Owner: fmt.Sprint("session ", i%8), Links: true})).Content
		if i == 0 {
			oldest = c[len(c)-1].URI
		}
	}
	_, err := many.Read("session 0", oldest)
	require.Error(t, err, "1024 results for any number of sessions")

	account := memlimit.New(4 << 20)
	s := gateway.NewResultStore(account)
	require.NotNil(t, s.Truncate("tools/call", texts(strings.Repeat("x", 900<<10)), nil, gateway.ResultLimit{Limit: gateway.MinLimit, Owner: "me"}))
	require.False(t, account.NewOwner().CanReserve(900<<10))
	s.Drop("me")
	require.True(t, account.NewOwner().CanReserve(900<<10), "dropped results free memory")

	full := gateway.NewResultStore(memlimit.New(1 << 20))
	got := string(full.Truncate("tools/call", texts(strings.Repeat("x", 2<<20)), nil, gateway.ResultLimit{Limit: gateway.MinLimit, Links: true}))
	require.Contains(t, got, "They could not be stored; ask the tool for less.")
	require.NotContains(t, got, "resource_link")
}

func TestResultsOfToolsAloneAreCut(t *testing.T) {
	t.Parallel()
	long := texts(strings.Repeat("x", 2000))
	for method, want := range map[string]bool{"tools/call": true, "tasks/get": true, "tasks/result": true, "resources/read": false, "prompts/get": false} {
		require.Equal(t, want, gateway.CanTruncate(method, long), method)
		require.False(t, gateway.CanTruncate(method, texts("x")), method)
	}
}

func TestToolsRaiseTheirBound(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]int{
		`{"_meta":{"anthropic/maxResultSizeChars":100000}}`:  100_000,
		`{"_meta":{"anthropic/maxResultSizeChars":9000000}}`: 500_000,
		`{"_meta":{"anthropic/maxResultSizeChars":-1}}`:      0,
		`{"_meta":{"anthropic/maxResultSizeChars":"1"}}`:     0,
		`{"_meta":[]}`: 0, `{}`: 0, ``: 0,
	} {
		require.Equal(t, want, gateway.RequestedLimit([]byte(definition)), definition)
	}
}
