package savedcall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

// failures returns the failed outcomes of a call with these checks, as "text: got".
func failures(t *testing.T, kind, checks string, a savedcall.Answer) []string {
	t.Helper()
	text := kind + ": x\nexpect:\n"
	for _, c := range strings.Split(checks, "\n") {
		text += "  - " + c + "\n"
	}
	if checks == "" {
		text = kind + ": x\n"
	}
	parsed, err := savedcall.Parse("a.yaml", []byte(text))
	require.NoError(t, err, text)
	r, err := parsed.Resolve(variables("id", "7", "dots", `"a.b"`, "range", `"z-a"`))
	require.NoError(t, err)
	failed := []string{}
	for _, o := range r.Evaluate(a) {
		require.Equal(t, o.Got == "", o.OK)
		if !o.OK {
			failed = append(failed, o.Text+": "+o.Got)
		}
	}
	return failed
}

func result(text string) savedcall.Answer { return savedcall.Answer{Result: json.RawMessage(text)} }

func rpcError(text string) savedcall.Answer { return savedcall.Answer{Error: json.RawMessage(text)} }

func TestPaths(t *testing.T) {
	t.Parallel()
	a := result(`{"content":[{"type":"text","text":"a.b Dune"},{"type":"text","text":"two"}],
		"structuredContent":{"n":1.0,"big":9007199254740993,"id":7,"text":"7","list":[{"id":1},{"id":2}],"none":null,"dots":"axb"}}`)
	for _, c := range []struct{ check, want string }{
		{`{path: $.isError, equals: false}`, ""},
		{`{path: "$['isError']", exists: true}`, ""},
		{`{path: $.isError, equals: true}`, "$.isError equals true: got false"},
		{`{path: $.structuredContent.n, equals: 1}`, ""},
		{`{path: $.structuredContent.n, equals: "1"}`, `$.structuredContent.n equals "1": got 1.0`},
		{`{path: $.structuredContent.big, equals: 9007199254740993}`, ""},
		{`{path: $.structuredContent.big, equals: 9007199254740992}`, "$.structuredContent.big equals 9007199254740992: got 9007199254740993"},
		{`{path: $.structuredContent.list, equals: [{id: 1.0}, {id: 2}]}`, ""},
		{`{path: "$.structuredContent.list[?@.id > 1].id", equals: 2}`, ""},
		{`{path: "$.structuredContent.list[-1:].id", equals: 2}`, ""},
		{`{path: "$.structuredContent.list[*].id", equals: 1}`, "$.structuredContent.list[*].id equals 1: selects 2 values instead of one"},
		{`{path: "$.structuredContent.list[*].id", exists: true}`, ""},
		{`{path: "$.structuredContent.none", equals: null}`, ""},
		{`{path: "$.structuredContent.none", exists: true}`, ""},
		{`{path: "$.structuredContent.gone", equals: null}`, "$.structuredContent.gone equals null: selects nothing"},
		{`{path: "$.structuredContent.gone", exists: false}`, ""},
		{`{path: "$.structuredContent.gone", exists: true}`, "$.structuredContent.gone exists: selects nothing"},
		{`{path: "$.structuredContent.id", exists: false}`, "$.structuredContent.id does not exist: found 7"},
		{`{path: "$.structuredContent.id", equals: "${id}"}`, ""},
		{`{path: "$.structuredContent.text", equals: "${id}"}`, `$.structuredContent.text equals 7: got "7"`},
		{`{path: "$.structuredContent.text", equals: "${WORD}"}`, `$.structuredContent.text equals "${WORD}": got "7"`}, // may be secret
		{`{path: "$.content[0].text", matches: "(?i)dune$"}`, ""},
		{`{path: "$.content[0].text", matches: "dune"}`, `$.content[0].text matches dune: got "a.b Dune"`},
		{`{path: "$.structuredContent.big", matches: "^\\d+$"}`, ""},
		{`{path: "$.content[0].text", matches: "^${dots} D"}`, ""},
		{`{path: "$.content[0].text", matches: "[${range}]"}`, "$.content[0].text matches [z-a]: the pattern is invalid with the values of its variables"},
		{`{path: "$.structuredContent.dots", matches: "${dots}"}`, `$.structuredContent.dots matches a\.b: got "axb"`},
	} {
		want := []string{}
		if c.want != "" {
			want = append(want, c.want)
		}
		assert.Equal(t, want, failures(t, "call", c.check, a), c.check)
	}
}

func TestErrorsFailUnlessTheyAreChecked(t *testing.T) {
	t.Parallel()
	failed := result(`{"isError":true,"content":[{"type":"text","text":"no\u001b[31m such book"}]}`)
	refused := rpcError(`{"code":-32602,"message":"unknown tool"}`)
	for _, c := range []struct {
		kind, checks string
		answer       savedcall.Answer
		want         []string
	}{
		{"call", "", result(`{"content":[]}`), nil},
		{"call", "", failed, []string{`no error: isError is true: no\x1b[31m such book`}},
		{"call", `{path: "$.content[0].text", matches: "no"}`, failed, []string{`no error: isError is true: no\x1b[31m such book`}},
		{"call", `{path: $.isError, equals: true}`, failed, nil},
		{"call", `{path: $.isError, exists: true}`, failed, []string{`no error: isError is true: no\x1b[31m such book`}},
		{"call", `{path: $.isError, equals: false}`, failed, []string{`$.isError equals false: got true`}},
		{"call", "", refused, []string{"no error: error -32602: unknown tool"}},
		{"call", `{path: $.isError, equals: false}`, refused, []string{"no error: error -32602: unknown tool", "$.isError equals false: selects nothing"}},
		{"call", `{path: $.error.code, equals: -32602}`, refused, nil},
		{"call", `{path: "$['error']['message']", matches: tool}`, refused, nil},
		{"call", `{path: $.error, exists: true}`, refused, nil},
		{"call", `{path: "$..code", equals: -32602}`, refused, []string{"no error: error -32602: unknown tool"}},
		{"call", `{path: $.error, exists: true}`, failed, []string{"no error: isError is true: no\\x1b[31m such book", "$.error exists: selects nothing"}},
		{"read", "", refused, []string{"no error: error -32602: unknown tool"}},
		{"read", "", result(`{"contents":[],"isError":true}`), nil},
		{"read", `{path: $.isError, exists: false}`, result(`{"contents":[]}`), nil},
		{"call", "", result(`{`), []string{"the answer is readable: the answer is no JSON"}},
		{"call", "", savedcall.Answer{}, []string{"the answer is readable: the answer is no JSON"}},
		{"call", "", result(strings.Repeat("[", 300) + strings.Repeat("]", 300)), []string{"the answer is readable: the answer is nested more than 200 deep"}},
	} {
		if c.want == nil {
			c.want = []string{}
		}
		assert.Equal(t, c.want, failures(t, c.kind, c.checks, c.answer), c.checks)
	}
}

func TestTimeSizeAndDefinition(t *testing.T) {
	t.Parallel()
	a := result(`{"content":[]}`)
	a.Time = 1500 * time.Millisecond
	require.Equal(t, []string{"time ≤ 1s: it took 1.5 s", "size ≤ 13B: it has 14 B"},
		failures(t, "call", "{time: 1s}\n{time: 1500ms}\n{size: 14B}\n{size: 13B}", a))

	tool := `{"name":"x","inputSchema":{"type":"object","required":["a"]}}`
	check := fmt.Sprintf("{definition: %q}", savedcall.Digest([]byte(tool)))
	for definition, want := range map[string]string{
		tool: "",
		`{"inputSchema":{"required":["a"],"type":"object"},"name":"x","_meta":{"a":1},"icons":[]}`: "",
		`{"name":"x","inputSchema":{"type":"object"}}`:                                             "the definition changed to sha256:",
		"": "the server does not list the tool",
	} {
		a.Definition = json.RawMessage(definition)
		failed := strings.Join(failures(t, "call", check, a), "\n")
		if want == "" {
			require.Empty(t, failed)
		} else {
			require.Contains(t, failed, want)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	const ok = `{"structuredContent":{"n":3}}`
	number := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	for _, c := range []struct{ schema, result, want string }{
		{number, ok, ""},
		{number, `{"structuredContent":{"n":3.0}}`, ""},
		{number, `{"structuredContent":{"n":"3"}}`, `at /properties/n: has type "string", want "integer"`},
		{number, `{"structuredContent":{}}`, `required: missing properties: ["n"]`},
		{"", ok, "the tool has no outputSchema"},
		{number, `{"content":[]}`, "the answer has no structuredContent"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"array"}}}`, ok, `at /$defs/a: has type "object", want "array"`},
		{`{"$ref":"file:///etc/passwd"}`, ok, "outputSchema: loading file:///etc/passwd: references to other documents are not supported"},
		{`{"$ref":"https://example.com/a.json"}`, ok, "references to other documents are not supported"},
		{`{"$schema":"https://example.com/schema"}`, ok, "cannot validate version https://example.com/schema"},
		{`{"$ref":"#"}`, ok, "outputSchema: it refers to itself"},
		{`{"properties":{"n":{"pattern":"` + strings.Repeat(".{0,1000}", 20) + `"}}}`, ok, "outputSchema: the pattern is too complex"},
		{`{"type":"objekt"}`, ok, `has type "object", want "objekt"`},
		{`7`, ok, "outputSchema: "},
		{`{"multipleOf":1e999999999}`, ok, "outputSchema: invalid schema: "},
		{number, `{"structuredContent":{"n":1e999999999}}`, "structuredContent: "},
		{`{"properties":{"n":{"pattern":"("}}}`, ok, "outputSchema: "},
	} {
		a := result(c.result)
		a.OutputSchema = json.RawMessage(c.schema)
		failed := strings.Join(failures(t, "call", "{schema: true}", a), "\n")
		if c.want == "" {
			assert.Empty(t, failed, c.schema)
		} else {
			assert.Contains(t, failed, "schema: ")
			assert.Contains(t, failed, c.want, c.schema)
		}
	}
	refused := rpcError(`{"code":1,"message":"m"}`)
	refused.OutputSchema = json.RawMessage(number)
	require.Equal(t, []string{"schema: the answer is an error"}, failures(t, "call", "{path: $.error, exists: true}\n{schema: true}", refused))
}

func TestSameComparesWithTheStoredAnswer(t *testing.T) {
	t.Parallel()
	stored := `{"content":[{"text":"at 1"}],"structuredContent":{"when":1,"rows":[{"id":1,"t":5},{"id":2,"t":6}]}}`
	for _, c := range []struct {
		check, result, want string
		diff                []string
	}{
		{"{same: true}", stored, "", nil},
		{"{same: true}", strings.Replace(stored, `"when":1`, `"when":1.0`, 1), "", nil},
		{"{same: true}", strings.Replace(stored, `{"content"`, `{"isError":false,"content"`, 1), "", nil},
		{"{same: true}", strings.Replace(stored, `"when":1`, `"when":2`, 1), "1 difference", []string{"~ $.structuredContent.when 1 → 2"}},
		{"{same: true, ignore: $.structuredContent.when}", strings.Replace(stored, `"when":1`, `"when":2`, 1), "", nil},
		{"{same: true, ignore: ['$.content[*].text', $..t]}", strings.NewReplacer("at 1", "at 2", `"t":5`, `"t":7`).Replace(stored), "", nil},
		{"{same: true, ignore: ['$.structuredContent.rows[?@.id == 2]', '$.structuredContent.rows[-1:].t']}", strings.Replace(stored, `"t":6`, `"t":7`, 1), "", nil},
		{"{same: true, ignore: ['$.content[*].text']}", strings.Replace(stored, `"t":5`, `"t":7`, 1), "1 difference; 1 path ignored", []string{"~ $.structuredContent.rows[0].t 5 → 7"}},
		{"{same: true}", strings.Replace(stored, `,{"id":2,"t":6}`, ``, 1), "1 difference", []string{`- $.structuredContent.rows[1] {"id":2,"t":6}`}},
	} {
		parsed, err := savedcall.Parse("a.yaml", []byte("call: x\nexpect: ["+c.check+"]\n"))
		require.NoError(t, err)
		r, err := parsed.Resolve(variables())
		require.NoError(t, err)
		a := result(c.result)
		a.Stored = result(stored).Document()
		outcomes := r.Evaluate(a)
		require.Len(t, outcomes, 1)
		assert.Equal(t, c.want, outcomes[0].Got, c.check)
		assert.Equal(t, c.diff, outcomes[0].Diff, c.check)
	}
	same := "{same: true}\n{path: $.a, equals: 1}"
	require.Equal(t, []string{"same: no answer is stored; accept this one first"}, failures(t, "call", same, result(`{"a":1}`)))
	refused := rpcError(`{"code":1,"message":"m"}`)
	refused.Stored = refused.Document()
	require.Empty(t, failures(t, "call", "{same: true}", refused))
	refused.Stored = json.RawMessage("{")
	require.Len(t, failures(t, "call", "{same: true}", refused), 1)
	ignored := result(`{"a":1,"b":[1]}`)
	ignored.Stored = ignored.Document()
	require.Empty(t, failures(t, "call", "{same: true, ignore: [$.a, '$.b[0]']}\n{path: '$.b[0]', equals: 1}\n{path: $.a, equals: 1}", ignored), "later checks see the whole answer")
}

// TestPathsThatTakeLongAreRefused uses answers that a hostile server may send.
func TestPathsThatTakeLongAreRefused(t *testing.T) {
	t.Parallel()
	deep := result(strings.Repeat(`{"a":`, 190) + "[" + strings.Repeat("1,", 100_000) + "1]" + strings.Repeat("}", 190))
	deep.Stored = deep.Document()
	const tooDeep = "the answer is too large or too deep for this path"
	const tooComplex = "the pattern is too complex for this answer"
	nested := result(`{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + "}")
	short := result(`{"list":[` + strings.Repeat("1,", 5_000) + `1]}`)
	long := result(`{"text":"` + strings.Repeat("a", 4<<20) + `"}`)
	wide := result(`{"list":[` + strings.Repeat("1,", 50_000) + `1]}`)
	for _, c := range []struct {
		check  string
		answer savedcall.Answer
		want   string
	}{
		{`{path: $..a..a, exists: true}`, deep, "$..a..a exists: " + tooDeep},
		{`{path: $.a.a.a, exists: true}`, deep, ""},
		{`{same: true, ignore: $..b}`, deep, `same, ignoring $..b: path "$..b": ` + tooDeep},
		{`{path: "$.list[?@ == $.list[0]]", exists: true}`, wide, `$.list[?@ == $.list[0]] exists: the answer is larger than 64 KiB, which is the limit for "$" in a filter`},
		{`{path: "$.list[?@ > 1]", exists: false}`, wide, ""},
		{`{path: "$.list[0,1]", exists: true}`, wide, ""},
		{`{path: "$.a` + strings.Repeat("[0,0]", 30) + `", exists: false}`, nested, "$.a" + strings.Repeat("[0,0]", 30) + " does not exist: " + tooDeep},
		{`{path: "$.list[?$.list[?$.list[?@ == 2]]]", exists: false}`, short, "$.list[?$.list[?$.list[?@ == 2]]] does not exist: " + tooDeep},
		{`{path: "$.list[?search(@, '(.{0,500}x){1,2}z')]", exists: false}`, short, "$.list[?search(@, '(.{0,500}x){1,2}z')] does not exist: " + tooComplex},
		{`{path: "$.list[?search(@, 'x\\u007b1000}y{1000}')]", exists: false}`, short, `$.list[?search(@, 'x\u007b1000}y{1000}')] does not exist: ` + tooComplex},
		{`{path: "$.list[?match(@, '[0-9]+')]", exists: false}`, short, ""},
		{`{path: "$.list[?match(@.text, @.like)]", exists: true}`, result(`{"list":[{"text":"abab","like":"(ab)+"}]}`), ""},
		{`{path: "$.list[?match(@, $.like)]", exists: false}`, result(`{"like":"(.{0,500}x){1,2}z","list":[` + strings.Repeat("1,", 5_000) + `1]}`), "$.list[?match(@, $.like)] does not exist: " + tooComplex},
		{`{path: $.text, matches: ".{0,999}z"}`, long, "$.text matches .{0,999}z: " + tooComplex},
		{`{path: $.text, matches: "a$"}`, long, ""},
	} {
		assert.Equal(t, c.want, strings.Join(failures(t, "call", c.check, c.answer), "\n"), c.check)
	}
}

func TestCaptures(t *testing.T) {
	t.Parallel()
	c, err := savedcall.Parse("a.yaml", []byte("call: x\ncapture:\n  id: $.structuredContent.id\n  list: \"$.structuredContent.list\"\n  error: $.isError\n"))
	require.NoError(t, err)
	r, err := c.Resolve(variables())
	require.NoError(t, err)
	got, err := r.Captures(result(`{"structuredContent":{"id":9007199254740993,"list":["<a>",{"b":1.50}]}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]json.RawMessage{"id": json.RawMessage("9007199254740993"), "list": json.RawMessage(`["<a>",{"b":1.50}]`), "error": json.RawMessage("false")}, got)
	_, err = r.Captures(result(`{"structuredContent":{"id":1}}`))
	require.EqualError(t, err, `a.yaml:4: capture "list": $.structuredContent.list selects nothing`)
	_, err = r.Captures(rpcError(`{"code":1,"message":"m"}`))
	require.ErrorContains(t, err, `a.yaml:3: capture "id": $.structuredContent.id selects nothing`)
}
