package mcpregistry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/mcpregistry"
)

type obj = map[string]any

// shelf is a registry API: a list in pages, and versions by name.
type shelf struct {
	entries []obj
	asked   atomic.Int64
	down    atomic.Bool
	queries []url.Values
}

func server(name, about string) obj {
	return obj{"name": name, "description": about, "version": "1.0.0"}
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	if s.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	rest, of := strings.CutPrefix(r.URL.EscapedPath(), "/v0.1/servers")
	if !of {
		http.NotFound(w, r)
		return
	}
	meta := obj{"io.modelcontextprotocol.registry/official": obj{"status": "active", "isLatest": true}, "com.example": []any{1}}
	if rest == "" {
		s.list(w, r.URL.Query(), meta)
		return
	}
	parts := strings.Split(rest, "/")
	name, _ := url.PathUnescape(parts[1])
	for _, e := range s.entries {
		if e["name"] == name && len(parts) == 4 && parts[2] == "versions" && (parts[3] == "latest" || parts[3] == e["version"]) {
			_ = json.NewEncoder(w).Encode(obj{"server": e, "_meta": meta})
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"error":"Server not found"}`))
}

func (s *shelf) list(w http.ResponseWriter, q url.Values, meta obj) {
	s.queries = append(s.queries, q)
	const page = 2
	first, _ := strconv.Atoi(q.Get("cursor"))
	var all, out []any
	for _, e := range s.entries {
		if strings.Contains(e["name"].(string), q.Get("search")) {
			all = append(all, obj{"server": e, "_meta": meta})
		}
	}
	metadata := obj{"count": page}
	out = all[min(first, len(all)):min(first+page, len(all))]
	if first+page < len(all) {
		metadata["nextCursor"] = strconv.Itoa(first + page)
	}
	_ = json.NewEncoder(w).Encode(obj{"servers": out, "metadata": metadata})
}

func client(t *testing.T, h http.Handler) *mcpregistry.Client {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	return &mcpregistry.Client{BaseURL: web.URL, Version: "test", Cache: mcpregistry.OpenCache(func(k string) string {
		return map[string]string{"XDG_CACHE_HOME": dir}[k]
	})}
}

func names(f *mcpregistry.SearchResult) (all []string) {
	for _, e := range f.Servers {
		all = append(all, e.Name)
	}
	return all
}

func TestSearchFollowsPagesAndTakesAllWords(t *testing.T) {
	t.Parallel()
	s := &shelf{entries: []obj{
		server("io.a/weather", "Forecasts"), server("io.b/weather-mcp", "Tides"), server("io.c/weather2", "forecasts of Oslo"),
		server("io.d/notes", "Notes"), server("io.e/weather3", "Forecasts"),
	}}
	c := client(t, s)
	found, err := c.Search(t.Context(), []string{"weather", "FORE"}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"io.a/weather", "io.c/weather2", "io.e/weather3"}, names(found))
	require.False(t, found.HasMore)
	require.Equal(t, url.Values{"search": {"weather"}, "limit": {"100"}, "version": {"latest"}}, s.queries[0])
	require.Equal(t, "2", s.queries[1].Get("cursor"))
	require.Equal(t, "active", found.Servers[0].Status)

	found, err = c.Search(t.Context(), []string{"weather"}, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"io.a/weather", "io.b/weather-mcp"}, names(found))
	require.True(t, found.HasMore)
}

func TestAServerIsFoundByItsNameAlsoInShort(t *testing.T) {
	t.Parallel()
	c := client(t, &shelf{entries: []obj{server("io.a/weather", ""), server("io.b/tides", ""), server("io.c/tides", ""), server("io.c/tides-2", "")}})
	for name, want := range map[string]string{"io.a/weather": "", "weather": "", "Weather": "no server", "tides": "\"tides\" is ambiguous: io.b/tides, io.c/tides", "nothing": "no server \"nothing\"", "io.a/none": "is not in the registry", "a/b/c": "is not a server name", "../x": "", "io.a/weather\x1b": "is not a server name"} {
		e, _, err := c.Get(t.Context(), name, "")
		if want == "" && err == nil {
			require.Equal(t, "io.a/weather", e.Name)
			continue
		}
		require.ErrorContains(t, err, want, name)
	}
	_, _, err := c.Get(t.Context(), "io.a/weather", "1.0.0")
	require.NoError(t, err)
	_, _, err = c.Get(t.Context(), "io.a/weather", "9")
	require.ErrorIs(t, err, mcpregistry.ErrNotFound)
}

func TestAnswersAreKeptAndServeWithoutANetwork(t *testing.T) {
	t.Parallel()
	s := &shelf{entries: []obj{server("io.a/weather", "")}}
	c := client(t, s)
	for range 2 {
		_, cached, err := c.Get(t.Context(), "io.a/weather", "")
		require.NoError(t, err)
		require.True(t, cached.IsZero())
	}
	require.EqualValues(t, 1, s.asked.Load(), "requested once")

	s.down.Store(true)
	old := time.Now().Add(-time.Hour)
	age := func() {
		files, err := filepath.Glob(filepath.Join(cacheOf(c), "*.json"))
		require.NoError(t, err)
		for _, f := range files {
			require.NoError(t, os.Chtimes(f, old, old))
		}
	}
	age()
	_, cached, err := c.Get(t.Context(), "io.a/weather", "")
	require.NoError(t, err)
	require.WithinDuration(t, old, cached, time.Second)
	require.EqualValues(t, 2, s.asked.Load(), "an old answer is requested again")

	_, _, err = c.Get(t.Context(), "io.a/other", "")
	require.ErrorContains(t, err, "registry unavailable")

	s.down.Store(false)
	_, cached, err = c.Get(t.Context(), "io.a/weather", "")
	require.NoError(t, err)
	require.True(t, cached.IsZero())

	s.entries = nil
	age()
	_, _, err = c.Get(t.Context(), "io.a/weather", "")
	require.ErrorIs(t, err, mcpregistry.ErrNotFound, "a withdrawn answer is not served from the cache")
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	for i := range 210 {
		s.entries = append(s.entries, server(fmt.Sprintf("io.a/s%d", i), ""))
	}
	c := client(t, s)
	for i := range 210 {
		_, _, err := c.Get(t.Context(), fmt.Sprintf("io.a/s%d", i), "")
		require.NoError(t, err)
	}
	files, err := os.ReadDir(cacheOf(c))
	require.NoError(t, err)
	require.Len(t, files, 200)
}

func TestABrokenCacheIsNone(t *testing.T) {
	t.Parallel()
	c := client(t, &shelf{entries: []obj{server("io.a/weather", "")}})
	require.NoError(t, os.MkdirAll(filepath.Dir(cacheOf(c)), 0o700))
	require.NoError(t, os.WriteFile(cacheOf(c), []byte("x"), 0o600))
	_, _, err := c.Get(t.Context(), "io.a/weather", "")
	require.NoError(t, err)
}

func cacheOf(c *mcpregistry.Client) string { return c.Cache.Folder() }

func TestRegistriesThatAnswerBadly(t *testing.T) {
	t.Parallel()
	page := func(next string, servers ...any) obj {
		return obj{"servers": servers, "metadata": obj{"nextCursor": next}}
	}
	entry := func(e any) obj { return obj{"server": e} }
	turn := atomic.Int64{}
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string // part of the error
		names  []string
		bad    int
		more   bool
	}{
		"no JSON":          {write("<html>"), "the answer is not JSON", nil, 0, false},
		"half of it":       {write(`{"servers":[`), "the answer is not JSON", nil, 0, false},
		"an end too early": {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); _, _ = w.Write([]byte("[")) }, "registry unavailable: unexpected EOF", nil, 0, false},
		"another form":     {write(`[1,2]`), "not a list of servers", nil, 0, false},
		"no list":          {write(`{"servers":{"a":1}}`), "not a list of servers", nil, 0, false},
		"nothing":          {write(`{}`), "", nil, 0, false},
		"a status":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }, "HTTP 418", nil, 0, false},
		"out of order":     {func(w http.ResponseWriter) { w.WriteHeader(500) }, "registry unavailable", nil, 0, false},
		"elsewhere, always": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/again")
			w.WriteHeader(http.StatusFound)
		}, "too many redirects", nil, 0, false},
		"not there":       {func(w http.ResponseWriter) { w.WriteHeader(404) }, "returned HTTP 404; check that it is an MCP registry", nil, 0, false},
		"larger than all": {func(w http.ResponseWriter) { _, _ = w.Write([]byte(`"` + strings.Repeat("x", 17<<20) + `"`)) }, "larger than 16 MiB", nil, 0, false},
		"in circles":      {encode(page("again", entry(server("a/x", "")))), "the same page repeatedly", nil, 0, false},
		"without end": {func(w http.ResponseWriter) {
			n := turn.Add(1)
			encode(page(strconv.Itoa(int(n)), entry(server("a/x"+strconv.Itoa(int(n)), ""))))(w)
		}, "", nil, 0, true},
		"pages of nothing": {encode(page("1")), "", nil, 0, false},
		"entries that are none": {encode(page("", 1, nil, obj{}, obj{"server": 1}, entry(obj{"name": 1}), entry(obj{"name": "no slash"}),
			entry(server("a/\x1b[2J", "")), entry(server(strings.Repeat("a", 300)+"/x", "")), entry(server("a/big", strings.Repeat("x", 300<<10))),
			entry(obj{"name": "a/many", "remotes": make([]obj, 201)}), entry(server("a/good", "\x1b[2J")))), "", []string{"a/good"}, 10, false},
		"deleted and doubled": {encode(page("", entry(server("a/x", "")), entry(server("a/x", "2")), obj{"server": server("a/y", ""), "_meta": obj{"io.modelcontextprotocol.registry/official": obj{"status": "deleted"}}})), "", []string{"a/x"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }))
			found, err := c.Search(t.Context(), []string{"x"}, 100)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.more, found.HasMore)
			if !tt.more {
				require.Equal(t, tt.names, names(found))
			}
			require.Equal(t, tt.bad, found.Invalid)
		})
	}
}

func TestARegistryThatHangs(t *testing.T) {
	t.Parallel()
	c := client(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := c.Search(ctx, []string{"x"}, 100)
	require.ErrorContains(t, err, "registry unavailable: no answer in time")
}

func write(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = w.Write([]byte(text)) }
}

func encode(v any) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _ = json.NewEncoder(w).Encode(v) }
}

func TestAnotherServerThanTheOneAskedForIsRefused(t *testing.T) {
	t.Parallel()
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { encode(obj{"server": server("io.evil/x", "")})(w) }))
	_, _, err := c.Get(t.Context(), "io.a/x", "")
	require.ErrorContains(t, err, `asked for io.a/x, got "io.evil/x"`)
}

func TestAddressesThatAreNoRegistry(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "registry", "ftp://x", "https://", "https://x/?q=1", "file:///etc/passwd"} {
		c := &mcpregistry.Client{BaseURL: base}
		_, err := c.Search(t.Context(), []string{"x"}, 1)
		require.ErrorContains(t, err, "is not a URL like", base)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := (&mcpregistry.Client{BaseURL: "http://127.0.0.1:1"}).Search(ctx, nil, 1)
	require.ErrorIs(t, err, context.Canceled)
}
