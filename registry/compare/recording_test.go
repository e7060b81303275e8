package compare_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/compare"
	"goblin/registry/recording"
)

// record writes a recording of one server and returns a function that opens it.
func record(t *testing.T, tools string, lines ...string) compare.OpenRecording {
	t.Helper()
	text := `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"goblin":"0.1.0","bodies":true}
{"type":"server","server":"odd","lists":{"tools":[` + tools + `]}}
` + strings.Join(lines, "\n") + "\n"
	path := filepath.Join(t.TempDir(), "one.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return func() (*recording.Reader, error) { return recording.Open(path) }
}

// called returns a line about a call of the tool "counter".
func called(number int, arguments, result string) string {
	l := recording.Line{
		Type: recording.TypeRequest, Time: time.Date(2026, 1, 2, 3, 4, number, 0, time.UTC), Number: uint64(number), Client: "me", Server: "odd",
		Method: "tools/call", Name: "odd_counter", Original: "counter", Took: 1.5, Outcome: "success", ResponseSize: len(result),
		Params: &recording.Body{JSON: fmt.Appendf(nil, `{"name":"odd_counter","arguments":%s,"_meta":{"progressToken":%d}}`, arguments, number)},
		Answer: &recording.Body{JSON: fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, result)},
	}
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return string(text)
}

const counter = `{"name":"counter","inputSchema":{"type":"object"}}`

func TestCallsOfRecordingsArePairedByTargetAndArguments(t *testing.T) {
	t.Parallel()
	a := record(t, counter+`,{"name":"gone"}`,
		called(1, `{"n":1}`, `{"count":1,"when":1}`),
		called(2, `{"n":1}`, `{"count":2,"when":2}`), // the second call with the same arguments
		called(3, `{"n":2}`, `{"count":3}`),
		`{"type":"request","n":4,"method":"tools/list","client":"me"}`,
		called(5, `{"n":3}`, `{"count":5}`))
	b := record(t, counter,
		called(10, `{"n":3.0}`, `{"count":5.0}`),
		called(11, `{"n":1}`, `{"count":1,"when":9}`),
		called(12, `{"n":1}`, `{"count":7,"when":9}`),
		`{"type":"list","server":"odd","list":"tools","added":[{"name":"counter","inputSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}]}`,
		called(13, `{"n":4}`, `{"count":9}`))
	ignore, err := compare.ParseIgnored("$.result.when")
	require.NoError(t, err)
	r, err := compare.CompareRecordings(a, b, compare.Options{Ignore: ignore})
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 1, 1}, []int{r.Same, r.Different, r.OnlyA, r.OnlyB})
	require.Len(t, r.Pairs, 3)
	var got []string
	for _, p := range r.Pairs {
		text := p.Op.Mark()
		if p.A != nil {
			text += fmt.Sprintf(" A %d %s", p.A.Number, p.A.Arguments)
		}
		if p.B != nil {
			text += fmt.Sprintf(" B %d %s", p.B.Number, p.B.Arguments)
		}
		if p.Result != nil {
			text += " " + strings.Join(texts(p.Result), ", ")
		}
		got = append(got, text)
	}
	require.Equal(t, []string{`~ A 2 {"n":1} B 12 {"n":1} ~ $.result.count 2 → 7`, `- A 3 {"n":2}`, `+ B 13 {"n":4}`}, got)
	require.Len(t, r.Definitions, 2)
	require.Contains(t, r.Definitions[0].What, `argument "n" added, required`)
	require.Equal(t, "gone", r.Definitions[1].Name)
	require.False(t, r.IsEqual())
	require.Equal(t, 6*time.Millisecond, r.A.Took)

	same, err := compare.CompareRecordings(a, a, compare.Options{})
	require.NoError(t, err)
	require.True(t, same.IsEqual())
}

func TestRecordingsWithoutBodiesCompareOutcomes(t *testing.T) {
	t.Parallel()
	make := func(bodies bool, outcome string, code int) compare.OpenRecording {
		path := filepath.Join(t.TempDir(), "one.jsonl")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"type":"recording","version":1,"bodies":%v}
{"type":"request","n":1,"server":"odd","method":"tools/call","name":"x","outcome":%q,"code":%d}
`, bodies, outcome, code), 0o600))
		return func() (*recording.Reader, error) { return recording.Open(path) }
	}
	r, err := compare.CompareRecordings(make(false, "success", 0), make(false, "failure", -32603), compare.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Different)
	require.Contains(t, r.Problems[0], "only names and outcomes were compared")
	require.Contains(t, r.Pairs[0].Problem, "outcome: success → failure")
	_, err = compare.CompareRecordings(make(true, "success", 0), make(false, "success", 0), compare.Options{})
	require.ErrorContains(t, err, "only one of the recordings has params and answers")
}

func TestFindCallReturnsTheDefinitionOfItsTime(t *testing.T) {
	t.Parallel()
	a := record(t, counter, called(1, `{"n":1}`, `{}`),
		`{"type":"list","server":"odd","list":"tools","added":[{"name":"counter","description":"new"}]}`,
		called(2, `{"n":1}`, `{}`), `{"type":"running","n":3}`)
	first, err := compare.FindCall(a, 1)
	require.NoError(t, err)
	require.JSONEq(t, counter, string(first.Definition))
	second, err := compare.FindCall(a, 2)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"counter","description":"new"}`, string(second.Definition))
	require.Equal(t, "odd_counter", second.Info.Name)
	_, err = compare.FindCall(a, 3)
	require.ErrorContains(t, err, "request 3 has no answer")
	_, err = compare.FindCall(a, 4)
	require.ErrorIs(t, err, recording.ErrNoRequest)
}

func TestDefinitionsOverTheLimitAreNotKept(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("1,", recording.MaxDefinitions)
	found, err := compare.FindCall(record(t, many+counter, called(1, `{}`, `{}`)), 1)
	require.NoError(t, err)
	require.Nil(t, found.Definition)
}
