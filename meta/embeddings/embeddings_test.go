package embeddings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/meta/embeddings"
	"goblin/meta/search"
	"goblin/registry"
)

// fakeModel is an embeddings API that knows three meanings.
type fakeModel struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[string]int
	tokens map[string]bool
	break_ atomic.Pointer[http.HandlerFunc] // replaces the answer, if set
}

var meanings = [][]string{{"time", "clock", "hour"}, {"file", "paper", "shred"}, {"database", "table"}}

func newFakeModel(t testing.TB) *fakeModel {
	m := &fakeModel{asked: map[string]int{}, tokens: map[string]bool{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *fakeModel) serve(w http.ResponseWriter, r *http.Request) {
	if broken := m.break_.Load(); broken != nil {
		(*broken)(w, r)
		return
	}
	var q struct {
		Model string
		Input []string
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || q.Model != "m" || r.URL.Path != "/v1/embeddings" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[r.Header.Get("Authorization")] = true
	var data []map[string]any
	for i, text := range q.Input {
		m.asked[text]++
		v := []float64{0.1, 0.1, 0.1, 1}
		for n, words := range meanings {
			for _, word := range words {
				v[n] += 3 * float64(strings.Count(strings.ToLower(text), word))
			}
		}
		data = append(data, map[string]any{"index": i, "embedding": v})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func (m *fakeModel) counts() (texts, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.asked {
		texts, most = texts+1, max(most, n)
	}
	return texts, most
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// catalog has four tools of three servers.
func catalog(t testing.TB) *registry.Registry {
	t.Helper()
	r := registry.New(registry.Options{Servers: []string{"files", "clock", "data-server"}})
	for server, tools := range map[string][][]byte{
		"files": {
			[]byte(`{"name":"read_file","title":"Read a file","description":"Reads a file as text.","inputSchema":{"type":"object"}}`),
			[]byte(`{"name":"delete_file","description":"Removes a file for good.","inputSchema":{"type":"object"}}`),
		},
		"clock":       {[]byte(`{"name":"time_in","description":"Tells the time in a zone.","inputSchema":{"type":"object"}}`)},
		"data-server": {[]byte(`{"name":"query","description":"Asks the database.","inputSchema":{"type":"object"}}`)},
	} {
		require.Empty(t, r.SetList(server, registry.Tool, tools))
	}
	return r
}

// newSearch returns a search with the model. It waits until the model has embedded the
// given number of tools.
func newSearch(t *testing.T, m *fakeModel, r *registry.Registry, tools int) (find func(text, server string) []string, failures *atomic.Int64) {
	t.Helper()
	failures = new(atomic.Int64)
	s := embeddings.New(embeddings.Options{
		URL: m.URL + "/v1", Model: "m", Token: "secret", Registry: r, Index: search.New(r), OnFailure: func(error) { failures.Add(1) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	find = func(text, server string) (names []string) {
		found, err := s.Search(t.Context(), search.Query{Text: text, Kinds: []registry.Kind{registry.Tool}, Server: server, Limit: 2})
		require.NoError(t, err)
		for _, h := range found.Hits {
			require.False(t, math.IsNaN(h.Score) || math.IsInf(h.Score, 0))
			names = append(names, h.Entry.Listed)
		}
		return names
	}
	if tools > 0 {
		require.Eventually(t, func() bool { n, _ := m.counts(); return n >= tools && len(find("shred", "")) > 0 }, 20*time.Second, 5*time.Millisecond)
	}
	return find, failures
}

func TestMeaningsFindWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	m, r := newFakeModel(t), catalog(t)
	require.NoError(t, r.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"own","description":"tells what this gateway has"}`),
		Call:       func(context.Context, []byte) ([]byte, error) { return nil, nil },
	}))
	find, failures := newSearch(t, m, r, 4)
	require.Equal(t, "clock_time_in", find("which hour", "")[0])
	require.ElementsMatch(t, []string{"files_delete_file", "files_read_file"}, find("paper", ""))
	require.Equal(t, "files_delete_file", find("paper removes", "")[0], "words count, too")
	require.Empty(t, find("paper", "clock"), "only that server's")
	require.Empty(t, find("zzz", "clock"))
	found, err := search.New(r).Search(t.Context(), search.Query{Text: "paper", Kinds: []registry.Kind{registry.Tool}})
	require.NoError(t, err)
	require.Empty(t, found.Hits, "words find nothing")

	require.Empty(t, r.SetList("clock", registry.Tool, [][]byte{
		[]byte(`{"name":"time_in","description":"Tells the time in a zone.","inputSchema":{"type":"object","properties":{"zone":{"type":"string"}}}}`),
		[]byte(`{"name":"look","title":"Look` + strings.Repeat("x", 1500) + `","description":"Shows a table.` + strings.Repeat("x", 1500) + `","inputSchema":{"type":"object"}}`),
	}))
	require.Eventually(t, func() bool { names := find("database", "clock"); return len(names) > 0 && names[0] == "clock_look" }, 20*time.Second, 5*time.Millisecond)
	find(strings.Repeat("hour ", 1000), "")
	m.mu.Lock()
	defer m.mu.Unlock()
	for text, n := range m.asked {
		require.LessOrEqual(t, len(text), 2<<10)
		require.False(t, strings.HasPrefix(text, "hour") && len(text) > search.MaxText, "a query is limited before it is sent")
		require.NotContains(t, text, "tells what this gateway has", "Goblin's own tools are not sent")
		if strings.Contains(text, ":") { // a tool, not a query
			require.Equal(t, 1, n, "%s is not requested again", text)
		}
	}
	require.Equal(t, map[string]bool{"Bearer secret": true}, m.tokens)
	require.Zero(t, failures.Load())
}

func TestWithoutMeaningsWordsCount(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTooManyRequests) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"none":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[]}`) },
		"no direction": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[0,0]}]}`)
		},
		"no such index": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"index":7,"embedding":[1]}]}`) },
		"empty":         func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"index":0,"embedding":[]}]}`) },
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1e300]}]}`)
		},
		"of another length": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2,3]}]}`)
		},
		"the end": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		m, r := newFakeModel(t), catalog(t)
		find, failures := newSearch(t, m, r, 4)
		m.break_.Store(&broken)
		require.Equal(t, []string{"clock_time_in"}, find("tell zone", ""), name)
		require.EqualValues(t, 1, failures.Load(), name)
		require.Equal(t, []string{"clock_time_in"}, find("tell zone", ""), name)
		require.EqualValues(t, 1, failures.Load(), "%s: not requested again at once", name)
	}
	m, r := newFakeModel(t), catalog(t)
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	m.break_.Store(&refuse)
	find, failures := newSearch(t, m, r, 0)
	require.Eventually(t, func() bool { return failures.Load() == 1 }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, []string{"clock_time_in"}, find("tell zone", ""))
}

func TestWhatIsNoVectorOfEachToolIsNone(t *testing.T) {
	t.Parallel()
	var astray atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { astray.Add(1) }))
	t.Cleanup(other.Close)
	const tools = 4
	answer := func(change func(data []map[string]any) []map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			var data []map[string]any
			for i := range tools {
				data = append(data, map[string]any{"index": i, "embedding": []float64{1, 2}})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"data": change(data)})
		}
	}
	for name, broken := range map[string]http.HandlerFunc{
		"one too few":      answer(func(data []map[string]any) []map[string]any { return data[1:] }),
		"one too many":     answer(func(data []map[string]any) []map[string]any { return append(data, data[0]) }),
		"one twice":        answer(func(data []map[string]any) []map[string]any { data[1]["index"] = 0; return data }),
		"before the first": answer(func(data []map[string]any) []map[string]any { data[1]["index"] = -1; return data }),
		"behind the last":  answer(func(data []map[string]any) []map[string]any { data[1]["index"] = tools; return data }),
		"another length":   answer(func(data []map[string]any) []map[string]any { data[1]["embedding"] = []float64{1}; return data }),
		"no direction":     answer(func(data []map[string]any) []map[string]any { data[1]["embedding"] = []float64{0, 0}; return data }),
		"too long": answer(func(data []map[string]any) []map[string]any {
			for i := range data {
				long := make([]float64, 8193)
				long[0] = 1
				data[i]["embedding"] = long
			}
			return data
		}),
		"another status": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			answer(func(data []map[string]any) []map[string]any { return data })(w, r)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
	} {
		m, r := newFakeModel(t), catalog(t)
		m.break_.Store(&broken)
		find, failures := newSearch(t, m, r, 0)
		require.Eventually(t, func() bool { return failures.Load() == 1 }, 20*time.Second, time.Millisecond, name)
		require.Equal(t, []string{"clock_time_in"}, find("tell zone", ""), name)
	}
	require.Zero(t, astray.Load(), "a redirect does not receive the token")
}

// A server with more tools than the limit leaves vectors for the tools of others.
func TestManyToolsOfOneServerTakeNoVectorsFromOthers(t *testing.T) {
	t.Parallel()
	var many [][]byte
	for i := range 20_000 {
		many = append(many, fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	m, r := newFakeModel(t), registry.New(registry.Options{Servers: []string{"a", "z"}})
	require.Empty(t, r.SetList("a", registry.Tool, many))
	require.Empty(t, r.SetList("z", registry.Tool, [][]byte{[]byte(`{"name":"shred","inputSchema":{"type":"object"}}`)}))
	newSearch(t, m, r, 0)
	asked := func(text string) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.asked[text] > 0
	}
	require.Eventually(t, func() bool { return asked("a t0") }, 20*time.Second, time.Millisecond)
	require.True(t, asked("z shred"), "in the same request as the first of the others")
}

// The size of an answer is limited by the number of texts. Errors contain no text of the
// API and no password.
func TestAnAnswerOfTheOtherProgramIsBounded(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	rows := map[string]http.HandlerFunc{
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) {
			part := []byte(strings.Repeat(" ", 1<<20))
			for {
				n, err := w.Write(part)
				if written.Add(int64(n)); err != nil || written.Load() > 64<<20 {
					return
				}
			}
		},
		"a long status": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("HTTP/1.1 500 " + strings.Repeat("PLANTED ", 1000) + "\r\nContent-Length: 0\r\n\r\n"))
				_ = conn.Close()
			}
		},
		"long headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 128<<10))
			_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,2,3,4]}]}`))
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("\r\n\r\n"))
				_ = conn.Close()
			}
		},
	}
	for name, broken := range rows {
		m, r := newFakeModel(t), catalog(t)
		var said atomic.Value
		s := embeddings.New(embeddings.Options{
			URL: strings.Replace(m.URL, "http://", "http://user:the-password@", 1) + "/v1", Model: "m", Registry: r, Index: search.New(r),
			OnFailure: func(err error) { said.Store(err.Error()) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		find := func() {
			_, err := s.Search(t.Context(), search.Query{Text: "shred", Kinds: []registry.Kind{registry.Tool}})
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { find(); n, _ := m.counts(); return n > 4 }, 20*time.Second, time.Millisecond, name)
		m.break_.Store(&broken)
		find()
		require.NotNil(t, said.Load(), name)
		require.Less(t, len(said.Load().(string)), 300, name)
		require.NotContains(t, said.Load(), "PLANTED", name)
		require.NotContains(t, said.Load(), "user", name)
		cancel()
		running.Wait()
	}
	require.Less(t, written.Load(), int64(16<<20))
}

// FuzzEmbeddings checks that a search returns at least the matches by words for any
// answer of the API.
func FuzzEmbeddings(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[0.5,1]}]}`), []byte(`{"data":[{"index":0,"embedding":[1,0]}]}`))
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1e38,1e38]}]}`), []byte(`{"data":[{"embedding":[-1,1e-38]}]}`))
	f.Add([]byte(`[]`), []byte(`{"data":[{"index":-1,"embedding":[1]}]}`))
	f.Fuzz(func(t *testing.T, ofTool, ofQuery []byte) {
		r := registry.New(registry.Options{Servers: []string{"s"}})
		r.SetList("s", registry.Tool, [][]byte{[]byte(`{"name":"read","inputSchema":{"type":"object"}}`)})
		asked, first := atomic.Int64{}, make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				close(first)
				_, _ = w.Write(ofTool)
				return
			}
			_, _ = w.Write(ofQuery)
		}))
		defer server.Close()
		s := embeddings.New(embeddings.Options{URL: server.URL, Registry: r, Index: search.New(r)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		<-first
		found, err := s.Search(t.Context(), search.Query{Text: "read", Kinds: []registry.Kind{registry.Tool}})
		require.NoError(t, err)
		require.Len(t, found.Hits, 1)
		require.False(t, math.IsNaN(found.Hits[0].Score))
		cancel()
		running.Wait()
	})
}
