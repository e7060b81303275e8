package recording_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/recording"
)

func TestFieldsOfTraffic(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	records := []registry.TrafficRecord{
		{
			Method: "tools/call", Name: "files_read", Time: noon.Add(-5 * time.Minute), Status: "success", Duration: 2500 * time.Millisecond, UserWait: time.Second,
			Request:  []byte(`{"name":"files_read","arguments":{"path":"src/main.go","opt":{"a.b":[{"c":5},{"c":"x"}],"deep":{"on":true}}},"_meta":{"secret":"s"}}`),
			Response: []byte(`{"content":[{"type":"text","text":"Gr\u00fc\u00dfe \ud83d\ude00 \"you\"\nthere"}]}`), Size: 20_000,
		},
		{
			Method: "tools/call", Name: "files_read", Time: noon.Add(-time.Hour), Status: registry.StatusToolError,
			Request: []byte(`{"arguments":{"path":"gone"}}`), Response: []byte(`{"isError":true,"content":[{"type":"text","text":"ENOENT: no such file"},{"type":"image"}]}`),
		},
		{Method: "resources/read", Time: noon, Status: "failure", Code: -32002, Events: []registry.RuleEvent{{Rule: 3, Text: "failed"}}, Request: []byte(`{"uri":"a:b"}`), Response: []byte(`{"code":-32002,"message":"not there"}`)},
		{Method: "roots/list", Direction: registry.ToClient, Code: -32601, Status: "failure", Response: []byte(`{"message":"unsupported"}`)},
		{Method: "tools/call", Status: "success", Request: []byte(`{"arguments":{"path":"cut off he`)},
		{Method: "tools/list", Status: registry.StatusInFlight},
	}
	reads := 0
	fields := recording.Fields(func(i int) *registry.TrafficRecord { return &records[i] }, func(i int) (params, response []byte) {
		reads++
		return records[i].Request, records[i].Response
	})
	ix := query.NewIndex(len(records), func(i int) string { return recording.Words(&records[i]) })
	for filter, want := range map[string][]int32{
		"arg.path:src":        {0},
		"arg.path:*":          {0, 1, 2, 3, 4, 5},
		`arg.path:""`:         {2, 3, 4, 5},
		`-rule:""`:            {2},
		"rule:failed":         {2},
		"rule:denied":         {},
		"arg.opt.a.b.c:5":     {0},
		"arg.opt.a.b.c:=x":    {0},
		"arg.opt.deep.on:yes": {},
		"arg.opt.deep.on:tru": {0},
		"arg:true":            {0},
		"arg.uri:a:b":         {2},
		"arg.secret:s":        {},
		"arg.Path:src":        {},
		"error:enoent":        {1},
		`error:"not there"`:   {2},
		"error:unsupported":   {},
		"body:grüße":          {0},
		"body:😀":              {0},
		`body:"""you"" the"`:  {0},
		"body:cut":            {4},
		"ms:>1s":              {0},
		"ms:>2s":              {},
		"size:>10k":           {0},
		"since:10m":           {0, 2},
		"at:11:00..11:55":     {0, 1},
		"status:running":      {5},
		"waits":               {5},
		"err:y":               {1, 2},
		"dir:out":             {3},
	} {
		q := query.Parse(filter, fields)
		require.Empty(t, q.Problem(), filter)
		found, err := q.Match(t.Context(), ix, noon)
		require.NoError(t, err)
		require.Equal(t, want, found, filter)
	}
	reads = 0
	_, err := query.Parse("error:x method:resources", fields).Match(t.Context(), ix, noon)
	require.NoError(t, err)
	require.Equal(t, 1, reads, "bodies of others are not read")
}

func TestManyArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	deep := `{"arguments":` + strings.Repeat(`[`, 900) + `"x"` + strings.Repeat(`]`, 900) + `}`
	require.Equal(t, []string{"x"}, recording.Arguments([]byte(deep), ""))
	wide := `{"arguments":[` + strings.Repeat(`"y",`, 50_000) + `"z"]}`
	require.Len(t, recording.Arguments([]byte(wide), ""), 1000)
	require.Empty(t, recording.Arguments([]byte(`{"arguments":{"a":1}}`), "a.b"))
}

// BenchmarkBodyFilter measures a search in the bodies of a full journal.
func BenchmarkBodyFilter(b *testing.B) {
	journal := registry.New(registry.Options{}).Traffic()
	for i := range 5000 {
		journal.Append(registry.TrafficRecord{
			Method: "tools/call", Name: "n", Status: "success", Request: fmt.Appendf(nil, `{"arguments":{"path":"src/%d"}}`, i),
			Response: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 150) + `"}]}`),
		})
	}
	rows := journal.Window(0, -1)
	fields := recording.Fields(func(i int) *registry.TrafficRecord { return &rows[i] }, func(i int) (params, response []byte) {
		rec, _ := journal.Record(rows[i].Seq)
		return rec.Request, rec.Response
	})
	ix := query.NewIndex(len(rows), func(i int) string { return recording.Words(&rows[i]) })
	for _, filter := range []string{"body:zzz", "arg.path:4999", "error:x", "n"} {
		b.Run(filter, func(b *testing.B) {
			for b.Loop() {
				if _, err := query.Parse(filter, fields).Match(b.Context(), ix, time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
