package shape_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/shape"
	"goblin/registry/rawjson"
)

var healthy = map[string][]string{
	"tools/call": {
		`{"content":[]}`, `{ "content" : [ {"type":"text","text":"t"} , {"type":"video","text":5} ], "x":null }`,
		`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}}],"isError":false,"structuredContent":{"content":null},"_meta":{"a":null}}`,
		`{"content":[{"type":"resource","resource":{"uri":"a","blob":"aGk="}},{"type":"resource_link","uri":"a","name":"n","size":15}]}`,
		`{"resultType":"input_required","content":null}`, `{"resultType":"task","taskId":"x"}`, `{"task":{"taskId":"x"}}`,
	},
	"tasks/get":           {`{"taskId":"x","status":"working"}`, `{"result":{"content":[]}}`},
	"resources/read":      {`{"contents":[{"uri":"a","text":"","mimeType":"m","annotations":{}},{"uri":"b","blob":""}]}`},
	"prompts/get":         {`{"description":"d","messages":[{"role":"assistant","content":{"type":"text","text":"t"}}]}`},
	"completion/complete": {`{"completion":{"values":["a"],"total":1,"hasMore":true}}`},
	"vendor/method":       {`{"content":null}`},
}

func TestHealthyResultsStayTheSame(t *testing.T) {
	for method, all := range healthy {
		for _, result := range all {
			got, kinds := shape.Repair(shape.Rules{Method: method}, nil, []byte(result))
			require.Equal(t, result, string(got))
			require.Zero(t, kinds, result)
			in := []byte(result)
			got, _ = shape.Repair(shape.Rules{Method: method}, nil, in)
			require.Same(t, &in[0], &got[0], "not copied")
		}
	}
}

func FuzzResult(f *testing.F) {
	methods := []string{"tools/call", "tasks/result", "tasks/get", "resources/read", "prompts/get", "completion/complete"}
	for method, all := range healthy {
		for _, result := range all {
			f.Add(method, result, false)
		}
	}
	for _, value := range []string{`null`, `"t"`, `5`, `[null]`, `{"type":"text"}`, `[["x"],{"uri":7},{"type":"resource","resource":{"uri":"x","text":5,"blob":""}}]`} {
		for _, name := range []string{"content", "contents", "messages", "completion", "result", "structuredContent", "isError", "_meta"} {
			f.Add("tools/call", `{"`+name+`":`+value+`}`, true)
		}
	}
	f.Fuzz(func(t *testing.T, method, result string, modern bool) {
		if rawjson.Valid([]byte(result)) != nil || !rawjson.IsObject([]byte(result)) {
			return
		}
		for _, m := range append(methods, method) {
			rules := shape.Rules{Method: m, URI: "x:1", AnyStructured: modern}
			in := []byte(result)
			once, kinds := shape.Repair(rules, nil, in)
			require.Equal(t, result, string(in), "the input is unchanged")
			require.NoError(t, rawjson.Valid(once), "%s of %s: %s", m, result, once)
			require.Equal(t, kinds == 0, bytes.Equal(once, in) && &once[0] == &in[0], "%s of %s: %s", m, result, once)
			twice, more := shape.Repair(rules, nil, once)
			require.Equal(t, string(once), string(twice))
			require.Zero(t, more, "%s of %s: %s", m, result, once)
		}
	})
}

func BenchmarkResult(b *testing.B) {
	text := strings.Repeat("a line of text. ", 62)
	small := strings.Repeat(`,{"type":"text","text":"a line of text"}`, 24)
	for name, result := range map[string]string{
		"one block of 1 kB":  `{"content":[{"type":"text","text":"` + text + `"}],"isError":false}`,
		"24 blocks in 1 kB":  `{"content":[` + small[1:] + `]}`,
		"1 kB of structured": `{"content":[{"type":"text","text":"t"}],"structuredContent":{"rows":[` + strings.Repeat(`{"id":1,"name":"value"},`, 40) + `{}]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(result)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, kinds := shape.Repair(shape.Rules{Method: "tools/call"}, nil, in); kinds != 0 {
					b.Fatal("the result is valid")
				}
			}
		})
	}
}
