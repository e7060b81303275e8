package serverreq

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
	"goblin/registry/rawjson"
)

// declared is a client that declared these capabilities.
type declared string

func (d declared) HasCapability(path ...string) bool {
	return rawjson.IsObject(rawjson.Path([]byte(d), path...))
}

func TestAClientIsAskedOnlyWhatItDeclared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ client, capability, params, lacks string }{
		{`{}`, "elicitation", `{}`, "elicitation"},
		{`{}`, "sampling", `{}`, "sampling"},
		{`{}`, "roots", ``, "roots"},
		{`{"roots":{}}`, "roots", ``, ""},
		{`{"elicitation":{}}`, "elicitation", `{}`, ""}, // means forms
		{`{"elicitation":{}}`, "elicitation", `{"mode":"form"}`, ""},
		{`{"elicitation":{}}`, "elicitation", `{"mode":"url"}`, "elicitation url"},
		{`{"elicitation":{"form":{}}}`, "elicitation", `{"mode":"url"}`, "elicitation url"},
		{`{"elicitation":{"url":{}}}`, "elicitation", `{"mode":"url"}`, ""},
		{`{"elicitation":{"url":{}}}`, "elicitation", `{}`, "elicitation form"},
		{`{"elicitation":{"url":{},"form":{}}}`, "elicitation", `{"mode":"form"}`, ""},
		{`{"sampling":{}}`, "sampling", `{}`, ""},
		{`{"sampling":{}}`, "sampling", `{"tools":[]}`, "sampling tools"},
		{`{"sampling":{"tools":{}}}`, "sampling", `{"tools":[]}`, ""},
	} {
		lacks := MissingCapability(declared(c.client), c.capability, []byte(c.params))
		require.Equal(t, c.lacks, strings.Join(lacks, " "), "%v", c)
		require.Equal(t, c.lacks == "", checkCapability(declared(c.client), c.capability, []byte(c.params)) == nil)
	}
}

func TestServersOfTheNewerRevisionAreToldWhatTheirQuestionsReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client string
		roots  []config.Root
		screen bool // a UI is open
		want   string
	}{
		{client: `{}`, want: `{}`},
		{client: `{"sampling":{"tools":{}},"elicitation":{"form":{}},"roots":{"listChanged":true},"odd":{}}`, want: `{"elicitation":{"form":{}},"roots":{},"sampling":{"tools":{}}}`},
		{client: `{}`, roots: []config.Root{{URI: "file:///a"}}, want: `{"roots":{}}`},
		{client: `{"sampling":{"tools":{}}}`, screen: true, want: `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}`},
		{client: `{"elicitation":{"form":{"x":1}}}`, screen: true, want: `{"elicitation":{"form":{"x":1},"url":{}},"sampling":{}}`},
		{client: `{"extensions":{"acme/x":{}}}`, want: `{"extensions":{"acme/x":{}}}`},
	} {
		a := New(Options{Roots: c.roots})
		if c.screen {
			a.openUIs.Add(1)
		}
		require.JSONEq(t, c.want, string(a.Capabilities([]byte(c.client), false)), c.client)
	}
}

func TestAScreenHelpsWithWhatItsUserCanDo(t *testing.T) {
	t.Parallel()
	a := New(Options{})
	lacking := func(code int, capabilities string) []byte {
		return fmt.Appendf(nil, `{"code":%d,"message":"m","data":{"requiredCapabilities":%s}}`, code, capabilities)
	}
	missing := lacking(downstream.CodeMissingCapability, `{"elicitation":{},"sampling":{}}`)
	require.False(t, a.UserCanAnswer(missing), "no UI is open")
	a.openUIs.Add(1)
	require.True(t, a.UserCanAnswer(missing))
	for _, refusal := range [][]byte{
		lacking(-32603, `{"elicitation":{}}`), lacking(downstream.CodeMissingCapability, `{}`),
		lacking(downstream.CodeMissingCapability, `{"elicitation":{},"roots":{}}`), lacking(downstream.CodeMissingCapability, `{"roots":{},"sampling":{}}`), nil,
	} {
		require.False(t, a.UserCanAnswer(refusal), "%s", refusal)
	}
}

func TestRootsOfSeveralClientsStandOnceAndAreBounded(t *testing.T) {
	t.Parallel()
	u := &rootsUnion{out: []byte(`{"roots":[`), known: make(map[string]bool)}
	for _, root := range []string{`{"uri":"file:///a","name":"x"}`, `{"uri":"file:///a","name":"y"}`, `{"name":"none"}`, `{"uri":"file:///b"}`} {
		u.add([]byte(root))
	}
	require.Equal(t, `{"roots":[{"uri":"file:///a","name":"x"},{"uri":"file:///b"}]}`, string(u.result()))
	for i := range maxRoots + 10 {
		u.add(rawjson.Object("uri", fmt.Sprint("file:///", i)))
	}
	require.Len(t, u.known, maxRoots)
}

// unit is a connection with a unit.
type unit struct {
	upstream.Conn
	name string
}

func (u unit) Unit() string { return u.name }

func TestWhoHearsThatAPageIsDone(t *testing.T) {
	t.Parallel()
	a := New(Options{})
	one, two := new(downstream.Session), new(downstream.Session)
	whose := func(server, unit, id string) *downstream.Session {
		return a.elicitations.session(elicitationKey{server, unit, id})
	}
	demand := func(s *downstream.Session, server, unit string, code int, ids ...string) {
		all := make([]string, len(ids))
		for i, id := range ids {
			all[i] = fmt.Sprintf(`{"mode":"url","elicitationId":%q}`, id)
		}
		a.RecordURLRequired(s, server, unit, fmt.Appendf(nil, `{"code":%d,"message":"m","data":{"elicitations":[%s]}}`, code, strings.Join(all, ",")))
	}
	demand(one, "s", "", CodeURLElicitation, "1", "2", strings.Repeat("x", maxElicitationID+1))
	demand(two, "s", "u", CodeURLElicitation, "1")
	demand(two, "s", "", -32603, "3")
	require.Same(t, one, whose("s", "", "1"))
	require.Same(t, one, whose("s", "", "2"))
	require.Same(t, two, whose("s", "u", "1"), "each unit has its own client")
	require.Nil(t, whose("s", "", "3"), "no page was demanded")
	require.Nil(t, whose("t", "", "1"))
	require.Len(t, a.elicitations.sessions, 3)

	a.elicitations.forget(one)
	require.Nil(t, whose("s", "", "1"))
	require.Same(t, two, whose("s", "u", "1"))
	for i := range maxServerElicitations {
		demand(one, "s", "", CodeURLElicitation, fmt.Sprint("later", i))
	}
	require.Nil(t, whose("s", "u", "1"), "the server's oldest is evicted")
	require.Same(t, one, whose("s", "", "later0"))
	for server := range maxElicitations / maxServerElicitations {
		for i := range maxServerElicitations {
			demand(two, fmt.Sprint("t", server), "", CodeURLElicitation, fmt.Sprint(i))
		}
	}
	require.Len(t, a.elicitations.sessions, maxElicitations)
	left := 0
	for _, keys := range a.elicitations.order {
		require.LessOrEqual(t, len(keys), maxServerElicitations)
		left += len(keys)
	}
	require.Equal(t, maxElicitations, left)
}

func TestTokensOfQuestionsAreOursOnTheWay(t *testing.T) {
	t.Parallel()
	a := New(Options{})
	params := []byte(`{"message":"?","_meta":{"progressToken":7}}`)
	first, forget := a.tokens.replace(unit{name: "1"}, nil, params)
	second, _ := a.tokens.replace(unit{name: "2"}, nil, params)
	require.NotEqual(t, string(first), string(second))
	own, ok := rawjson.String(rawjson.Path(first, "_meta", "progressToken"))
	require.True(t, ok)
	require.Equal(t, progressToken{unit{name: "1"}, []byte("7"), nil}, a.tokens.open[own])
	forget()
	require.Len(t, a.tokens.open, 1)
	same, _ := a.tokens.replace(unit{}, nil, []byte(`{"message":"?"}`))
	require.Equal(t, `{"message":"?"}`, string(same))
	require.Len(t, a.tokens.open, 1)
}
