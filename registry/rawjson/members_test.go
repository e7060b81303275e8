package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/rawjson"
)

func TestMembersThatReadersMayTakeForAnotherAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":"a","arguments":{"Name":1,"name":2,"name":3}}`:           ``,
		`{"name":"a","names":"b","_name":"c"}`:                            ``,
		`{"name":"a","Name":"b"}`:                                         `member "Name" can be mistaken for "name"; omit it`,
		`{"NAME":"b"}`:                                                    `member "NAME" can be mistaken for "name"; omit it`,
		`{"name":"a","name":"a"}`:                                         `member "name" occurs more than once`,
		`{"name":"a","n\u0061me":"a"}`:                                    `member "name" occurs more than once`,
		`{"name":"a","\u004eame":"a"}`:                                    `member "\u004eame" can be mistaken for "name"; omit it`,
		`{"name":"a","taſk":{}}`:                                          `member "taſk" can be mistaken for "task"; omit it`,
		`{"name":"a","ta\u017Fk":{}}`:                                     `member "ta\u017Fk" can be mistaken for "task"; omit it`,
		"{\"name\":\"a\",\"tas\u212a\":{}}":                               "member \"tas\u212a\" can be mistaken for \"task\"; omit it",
		`{"_meta":{},"_META":{}}`:                                         `member "_META" can be mistaken for "_meta"; omit it`,
		`{"_meta":{"progressToken":1,"progresstoken":2}}`:                 `member "progresstoken" can be mistaken for "_meta.progressToken"; omit it`,
		`{"_meta":{"progressToken":1,"progressToken":2}}`:                 `member "_meta.progressToken" occurs more than once`,
		`{"_meta":{"IO.modelcontextprotocol/logLevel":"debug"}}`:          `member "IO.modelcontextprotocol/logLevel" can be mistaken for "_meta.io.modelcontextprotocol/logLevel"; omit it`,
		`{"_meta":{"mine":1,"Mine":2,"mine":3}}`:                          ``,
		`{"` + strings.Repeat("n", 1000) + `":1}`:                         ``,
		`{"name":"a","name\u0000x":"b"}`:                                  `member "name\u0000x" can be mistaken for "name"; omit it`,
		`{"":1,"\\":2,"\"":3}`:                                            ``,
		`{"_meta":[1,{"progressToken":1,"progressToken":2}]}`:             ``,
		`{"task":{"ttl":1,"TTL":2}}`:                                      `member "TTL" can be mistaken for "task.ttl"; omit it`,
		`{"requestState":"a","requeststate":"b"}`:                         `member "requeststate" can be mistaken for "requestState"; omit it`,
		`[{"name":1,"name":2}]`:                                           ``,
		`{"arguments":{"a":1},"Arguments":{"a":2}}`:                       `member "Arguments" can be mistaken for "arguments"; omit it`,
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskid":1}}}`: `member "taskid" can be mistaken for "_meta.io.modelcontextprotocol/related-task.taskId"; omit it`,
	} {
		err := rawjson.Params("tools/call").Check([]byte(text))
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.EqualError(t, err, want, text)
		}
	}
	require.Error(t, rawjson.Params("vendor/method").Check([]byte(`{"_meta":{},"_Meta":{}}`)))
	require.NoError(t, rawjson.Params("vendor/method").Check([]byte(`{"name":1,"Name":2}`)))
	require.Error(t, rawjson.Params("completion/complete").Check([]byte(`{"ref":{"type":"ref/prompt","name":"a"},"ref":{}}`)))
}

func TestMembersAtPathsOfOthersAreFoundLikeOnesThatGoblinNames(t *testing.T) {
	t.Parallel()
	tree := rawjson.Paths([]string{"state", "of"}, []string{"state", "at"}, []string{})
	for text, want := range map[string]string{
		`{"state":{"of":1,"at":2,"other":3,"Other":4}}`:     ``,
		"{\"\u017ftate\":1}":                                "member \"\u017ftate\" can be mistaken for \"state\"; omit it",
		`{"state":{"at":1,"AT":2}}`:                         `member "AT" can be mistaken for "state.at"; omit it`,
		`{"state\u0000` + strings.Repeat("x", 200) + `":1}`: `member "state\u0000` + strings.Repeat("x", 88) + ` can be mistaken for "state"; omit it`,
	} {
		err := tree.Check([]byte(text))
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.EqualError(t, err, want, text)
		}
	}
	require.EqualError(t, rawjson.Paths([]string{"\u212aelvin"}).Check([]byte(`{"kelvin":1}`)), "member \"kelvin\" can be mistaken for \"\u212aelvin\"; omit it")
	var many [][]string
	for i := range 100 {
		many = append(many, []string{fmt.Sprintf("m%d", i)})
	}
	tree = rawjson.Paths(many...)
	require.Error(t, tree.Check([]byte(`{"M63":1}`)))
	require.NoError(t, tree.Check([]byte(`{"M64":1}`)), "members beyond the limit do not count")
}

// uris collects the URIs that a visitor receives.
type uris []string

func (u *uris) URI(raw []byte) { *u = append(*u, string(raw)) }

func TestURIsOfContentAreThoseOfLinksAndOfWhatIsEmbedded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uris{
		`{"content":[{"type":"resource_link","uri":"a"},{"uri":"b","type":"resource_link"},{"type":"resource","resource":{"uri":"c"}}]}`:                    {`"a"`, `"b"`, `"c"`},
		`{"content":[{"type":"resource_link"},{"type":"text","uri":"a"},{"type":"resource","uri":"b"},{"uri":"c"},{"type":"text","resource":{"uri":"d"}}]}`: nil,
	} {
		var told uris
		require.True(t, rawjson.Result("tools/call").Read(nil, []byte(text), &told))
		require.Equal(t, want, told, text)
	}
}

func TestValuesOfTheMembersThatDecideAreFoundByTheirPlaces(t *testing.T) {
	t.Parallel()
	call := rawjson.Params("tools/call")
	require.Negative(t, call.Place("uri"))
	for text, want := range map[string][]string{
		`{"name": "a" ,"other":{"name":"b"},"_meta":{"progressToken":1},"arguments":{"name":"c","task":[]} }`: {`"a"`, ``, `{"progressToken":1}`},
		`{"n\u0061me":"a","task":{"ttl":1}}`: {`"a"`, `{"ttl":1}`, ``},
		`{}`:                                 {``, ``, ``}, `[{"name":"a"}]`: {``, ``, ``},
	} {
		var values [8][]byte
		require.NoError(t, call.Split([]byte(text), values[:]), text)
		for i, name := range []string{"name", "task", "_meta"} {
			require.Equal(t, want[i], string(values[call.Place(name)]), "%s of %s", name, text)
		}
	}
	var values [8][]byte
	require.EqualError(t, call.Split([]byte(`{"name":"a","_meta":{"progressToken":1,"progressToken":2}}`), values[:]), `member "_meta.progressToken" occurs more than once`)
	require.EqualError(t, call.Split([]byte(`{"name":"a","Name":"b"}`), values[:]), `member "Name" can be mistaken for "name"; omit it`)
}

func TestWhatReadersMayDisputeIsTakenOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, text, want string }{
		{"tools/call", `{"content":[{"type":"text","text":"URI"}],"structuredContent":{"Type":1,"type":2}}`, ``},
		{
			"tools/call", `{"content":[{"type":"resource_link","uri":"a","URI":"mcp://other/b","name":"n"}]}`,
			`{"content":[{"type":"resource_link","uri":"a","name":"n"}]}`,
		},
		{"tools/call", `{"content":[{"type":"resource_link","URI":"mcp://other/b"}]}`, `{"content":[{"type":"resource_link"}]}`},
		{"tools/call", `{"content":[{"type":"text","Type":"resource_link","uri":"mcp://other/b"}]}`, `{"content":[{"type":"text","uri":"mcp://other/b"}]}`},
		{"tools/call", `{"content":[{"type":"text","type":"resource_link","uri":"b"}]}`, `{"content":[{"type":"resource_link","uri":"b"}]}`},
		{"tools/call", `{"content":[],"Content":[{"type":"resource_link","uri":"b"}]}`, `{"content":[]}`},
		{"tools/call", `{ "a" : 1 , "content" : [ ] , "content" : [ 1 ] }`, `{"a":1,"content":[1]}`},
		{
			"tools/call", `{"content":[{"type":"resource","resource":{"uri":"a","Uri":"b","text":"t"},"Resource":{"uri":"c"}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"a","text":"t"}}]}`,
		},
		{"tools/call", `{"_meta":{"ui":{"resourceUri":"a","resourceURI":"b"},"UI":{}}}`, `{"_meta":{"ui":{"resourceUri":"a"}}}`},
		{
			"prompts/get", `{"messages":[{"role":"user","content":{"type":"text","TYPE":"resource"}},{"content":[{"uri":"a","uri":"b"}],"Content":{}}]}`,
			`{"messages":[{"role":"user","content":{"type":"text"}},{"content":[{"uri":"b"}]}]}`,
		},
		{"resources/read", `{"contents":[{"uri":"a","URI":"b"}],"Contents":[]}`, `{"contents":[{"uri":"a"}]}`},
		{
			"tools/call", `{"inputRequests":{"q":{"method":"roots/list","Method":"elicitation/create","params":{"mode":"form","Mode":"url"}}}}`,
			`{"inputRequests":{"q":{"method":"roots/list","params":{"mode":"form"}}}}`,
		},
		{"tools/list", `{"tools":[],"Tools":[]}`, ``},
	} {
		if tt.want == "" {
			tt.want = tt.text
		}
		text := []byte(tt.text)
		got := rawjson.Result(tt.method).Clean(nil, text)
		require.Equal(t, tt.want, string(got))
		if tt.want == tt.text {
			require.Same(t, &text[0], &got[0], "not copied")
		}
	}
	require.Equal(t, `{"code":1,"message":"m","data":{"uri":"a"}}`,
		string(rawjson.ErrorObject.Clean(nil, []byte(`{"code":1,"message":"m","data":{"uri":"a","Uri":"mcp://other/b"},"Data":{}}`))))
}

// readers return the value of a member of an object, or nil if it is missing.
var readers = map[string]func(obj []byte, name string) []byte{
	"encoding/json": func(obj []byte, name string) []byte {
		field := reflect.StructField{Name: "V", Type: reflect.TypeFor[json.RawMessage](), Tag: reflect.StructTag(`json:"` + name + `"`)}
		v := reflect.New(reflect.StructOf([]reflect.StructField{field}))
		if json.Unmarshal(obj, v.Interface()) != nil {
			return nil
		}
		return v.Elem().Field(0).Bytes()
	},
	"one that takes the last": func(obj []byte, name string) []byte {
		var m map[string]json.RawMessage
		_ = json.Unmarshal(obj, &m)
		return m[name]
	},
	"one that takes the first": func(obj []byte, name string) []byte {
		d := json.NewDecoder(bytes.NewReader(obj))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return nil
		}
		for d.More() {
			key, err := d.Token()
			var v json.RawMessage
			if err != nil || d.Decode(&v) != nil {
				return nil
			}
			if key == name {
				return v
			}
		}
		return nil
	},
}

// agreed fails if a reader's value of a relevant member differs from Goblin's. names are
// the names of a KeyTree, as KeyTree.Walk passes them.
func agreed(t *testing.T, tree *rawjson.KeyTree, text []byte) {
	t.Helper()
	tree.Walk(text, func(obj []byte, name string) {
		ours := rawjson.Get(obj, name)
		for who, read := range readers {
			theirs := read(obj, name)
			if !bytes.Equal(bytes.TrimSpace(theirs), ours) {
				t.Fatalf("%s reads %s for %q of %s, Goblin %s", who, theirs, name, obj, ours)
			}
		}
	})
}

var methods = []string{
	"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete", "tasks/get", "tasks/result",
	"subscriptions/listen", "sampling/createMessage", "elicitation/create", "roots/list", "notifications/progress",
	"notifications/message", "notifications/resources/updated", "notifications/tasks/status", "vendor/method",
}

// FuzzReadersAgree checks that accepted and repaired texts mean the same to all readers.
func FuzzReadersAgree(f *testing.F) {
	for i, text := range []string{
		`{"name":"srv_ok","Name":"danger","arguments":{}}`, `{"name":"a","name":"b"}`,
		`{"uri":"a","URI":"b"}`, `{"contents":[{"uri":"a","ur\u0131":"b","\u0055RI":"c"}]}`,
		`{"ref":{"type":"ref/prompt","Type":"ref/resource","name":"a","uri":"b"},"ref":{}}`,
		`{"content":[{"type":"text","type":"resource","resource":{"uri":"a","Uri":"b"}}],"_meta":{"ui":{"resourceUri":"u"}}}`,
		`{"messages":[{"content":[{"type":"text","uri":"a","uri":"b"}]},{"content":{"TYPE":1}}]}`,
		`{"_meta":{"progressToken":1,"progreſſToken":2,"io.modelcontextprotocol/related-tas\u212a":{}}}`,
		`{"inputRequests":{"a":{"method":"x","Method":"y","params":{"mode":"form","mode":"url"}}},"resultType":"input_required"}`,
		`{"notifications":{"toolsListChanged":true,"toolslistchanged":false}}`, `{"\ud800":1,"nam\u0065":2}`,
	} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, n uint8, text []byte) {
		if rawjson.Valid(text) != nil {
			return
		}
		method := methods[int(n)%len(methods)]
		for _, tree := range []*rawjson.KeyTree{
			rawjson.Params(method), rawjson.Result(method), rawjson.ErrorObject, rawjson.Tool, rawjson.Prompt, rawjson.Resource, rawjson.Template,
		} {
			passes := tree.Check(text) == nil
			if passes {
				agreed(t, tree, text)
			}
			clean := tree.Clean(nil, text)
			require.NoError(t, rawjson.Valid(clean))
			require.NoError(t, tree.Check(clean))
			agreed(t, tree, clean)
			require.Equal(t, passes, tree == nil || len(text) > 0 && &clean[0] == &text[0], "unambiguous texts are passed on unchanged")
		}
	})
}

func BenchmarkCheckACall(b *testing.B) {
	text := []byte(`{"name":"server_tool","arguments":{"path":"/tmp/x","limit":10},"_meta":{"progressToken":7}}`)
	b.ReportAllocs()
	for b.Loop() {
		if rawjson.Params("tools/call").Check(text) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkCleanAResult(b *testing.B) {
	text := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 100) + `"},{"type":"resource_link","uri":"file:///a","name":"a"}],"structuredContent":{"a":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		rawjson.Result("tools/call").Clean(nil, text)
	}
}
