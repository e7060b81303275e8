package jsonrpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseReadsTheEnvelope(t *testing.T) {
	t.Parallel()
	m, err := jsonrpc.Parse([]byte(`{"params":{"a":1},"id":9007199254740993,"m\u0065thod":"tools/call","jsonrpc":"2.0","x":[]}`))
	require.NoError(t, err)
	require.True(t, m.IsRequest())
	require.Equal(t, "9007199254740993", string(m.ID), "ids are not decoded")
	require.Equal(t, "tools/call", m.Method)
	require.Equal(t, `{"a":1}`, string(m.Params))

	m, err = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized","params":null}`))
	require.NoError(t, err)
	require.True(t, m.IsNotification())
	require.Nil(t, m.Params)

	m, err = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":"a","result":{"r":[]}}`))
	require.NoError(t, err)
	require.True(t, m.IsResponse())
	require.Equal(t, `{"r":[]}`, string(m.Result))

	m, err = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":-7,"method":"ping"}`))
	require.NoError(t, err)
	require.Equal(t, "-7", string(m.ID), "for any number")

	m, err = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}`))
	require.NoError(t, err)
	require.True(t, m.IsResponse())
	require.Nil(t, m.ID)
}

func TestParseNamesTheFaultAndKeepsTheID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame, id string
		code      int
		text      string
	}{
		{`{"jsonrpc":"2.0","id":7,"method":`, "7", jsonrpc.CodeParse, "unexpected end"},
		{`{"jsonrpc":"2.0","id":-7,"method":`, "-7", jsonrpc.CodeParse, "unexpected end"},
		{`garbage`, "", jsonrpc.CodeParse, "unexpected 'g'"},
		{`{"id":1,"jsonrpc":"2.0","result":` + strings.Repeat("[", 200_000), "1", jsonrpc.CodeInvalidRequest, "nested more than 10000 deep"},
		{`{"id":{"a":1},"jsonrpc":"2.0","method":"x"}`, "", jsonrpc.CodeInvalidRequest, `"id" must be a string or a number`},
		{`{"id":null,"jsonrpc":"2.0","method":"x"}`, "", jsonrpc.CodeInvalidRequest, `"id" must be`},
		{`{"id":"q","method":"x"}`, `"q"`, jsonrpc.CodeInvalidRequest, `"jsonrpc" must be "2.0"`},
		{`{"id":1,"jsonrpc":"2.0","method":5}`, "1", jsonrpc.CodeInvalidRequest, `"method" must be`},
		{`{"id":1,"jsonrpc":"2.0","method":"x","method":"y"}`, "1", jsonrpc.CodeInvalidRequest, `duplicate member "method"`},
		{`{"id":{},"jsonrpc":"2.0","method":"x","method":"y"}`, "", jsonrpc.CodeInvalidRequest, `"id" must be`},
		{`{"id":1,"jsonrpc":"2.0","method":"x","params":[1]}`, "1", jsonrpc.CodeInvalidParams, `"params" must be an object`},
		{`{"jsonrpc":"2.0","method":"x","params":[1]}`, "", jsonrpc.CodeInvalidRequest, `"params" must be an object`},
		{`{"id":1,"jsonrpc":"2.0","method":"x","params":7}`, "1", jsonrpc.CodeInvalidRequest, `"params" must be an object`},
		{`{"id":1,"jsonrpc":"2.0"}`, "1", jsonrpc.CodeInvalidRequest, "either a method, a result or an error"},
		{`[{"id":1,"jsonrpc":"2.0","method":"ping"}]`, "", jsonrpc.CodeInvalidRequest, "batches are not supported"},
		{`"text"`, "", jsonrpc.CodeInvalidRequest, "must be an object"},
	} {
		_, err := jsonrpc.Parse([]byte(c.frame))
		var parse *jsonrpc.ParseError
		require.True(t, errors.As(err, &parse), "%.60s: %v", c.frame, err)
		require.Equal(t, c.id, string(parse.ID), "%.60s", c.frame)
		require.Equal(t, c.code, parse.Code, "%.60s", c.frame)
		require.ErrorContains(t, parse.Reply(), c.text)
		require.NoError(t, rawjson.Valid(parse.Reply().Frame(parse.ID)))
	}
}

func TestFramesThatNestBeyondTheBoundAreRefusedWithTheirId(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + `"]}[{"` + strings.Repeat(`}]`, n/2) }
	for _, c := range []struct {
		frame string
		asks  bool
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":%s}}`, true},
		{`{"jsonrpc":"2.0","params":{"a":%s},"method":"x","id":7}`, true},
		{`{"jsonrpc":"2.0","id":7,"result":{"a":%s}}`, false},
		{`{"jsonrpc":"2.0","error":{"a":%s},"id":7}`, false},
	} {
		for _, size := range []int{0, 100_000} { // at once, and while it arrives
			read := func(depth int) error {
				frame := fmt.Sprintf(c.frame, nested(depth))
				frame = frame[:1] + strings.Repeat(" ", size) + frame[1:]
				r := jsonrpc.NewReader(strings.NewReader(frame+"\n"), 1<<30).CheckWhileReading(64)
				line, err := r.Read()
				require.NoError(t, err)
				_, err = r.Parse(line)
				return err
			}
			require.NoError(t, read(62), c.frame)
			var bad *jsonrpc.ParseError
			require.ErrorAs(t, read(64), &bad, c.frame)
			require.Equal(t, "7", string(bad.ID), c.frame)
			require.Equal(t, c.asks, bad.WantsAnswer, c.frame)
			require.Equal(t, jsonrpc.CodeInvalidRequest, bad.Code)
			require.ErrorContains(t, bad, "more than 64 deep (limits.depth)")
		}
	}
}

func TestFramesCarryRawParts(t *testing.T) {
	t.Parallel()
	params := []byte(`{"name":"files_read","_meta":{"progressToken":1}}`)
	name := rawjson.Get(params, "name")
	token := rawjson.Path(params, "_meta", "progressToken")
	frame := jsonrpc.RequestFrame([]byte("12"), "tools/call", params,
		rawjson.ReplaceEdit(params, name, []byte(`"read"`)), rawjson.ReplaceEdit(params, token, []byte("12")))
	require.Equal(t, `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"read","_meta":{"progressToken":12}}}`+"\n", string(frame))
	require.Equal(t, `{"jsonrpc":"2.0","method":"ping"}`+"\n", string(jsonrpc.NotificationFrame("ping", nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":"a","result":{}}`+"\n", string(jsonrpc.ResultFrame([]byte(`"a"`), []byte("{}"))))
	e := &jsonrpc.Error{Code: -32002, Message: "not \"there\"", Data: []byte(`{"uri":"x"}`)}
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"not \"there\"","data":{"uri":"x"}}}`+"\n", string(e.Frame(nil)))
	back := jsonrpc.ParseErrorObject(e.Object())
	require.Equal(t, e, back)
}

func TestNoLineBreakOfAMessageIsLeftBetweenItsTokens(t *testing.T) {
	t.Parallel()
	const broken, whole = "{\"a\":\r\n[1,\n\"\\n\"]}", "{\"a\":  [1, \"\\n\"]}"
	read := func(frame string) jsonrpc.Message {
		m, err := jsonrpc.Parse([]byte(frame))
		require.NoError(t, err)
		m.OneLine()
		return m
	}
	require.Equal(t, whole, string(read(`{"jsonrpc":"2.0","id":1,"method":"x","params":`+broken+"\n}").Params))
	require.Equal(t, whole, string(read(`{"jsonrpc":"2.0","id":1,"result":`+broken+"}").Result))
	require.Equal(t, whole, string(read(`{"jsonrpc":"2.0","id":1,"error":`+broken+"}").Error))
	require.Equal(t, "{ }\n", string(jsonrpc.OneLine([]byte("{\n}\n"))), "except at the end of a frame")
}

func TestACancellationSaysWhyIfThatIsKnown(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"it is \"late\""}}`+"\n", string(jsonrpc.CancelFrame([]byte(`"a"`), `it is "late"`)))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+"\n", string(jsonrpc.CancelFrame([]byte("7"), "")))
}

func TestEqualIDsHaveEqualKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, jsonrpc.IDString([]byte(`"\u0061"`)), jsonrpc.IDString([]byte(`"a"`)))
	require.NotEqual(t, jsonrpc.IDString([]byte(`"1"`)), jsonrpc.IDString([]byte(`1`)))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`))
	f.Add([]byte(`{"id":"x","jsonrpc":"2.0","error":{"code":1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := jsonrpc.Parse(frame)
		if err != nil {
			var parse *jsonrpc.ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("%q: error of type %T", frame, err)
			}
			if e := rawjson.Valid(parse.Reply().Frame(parse.ID)); e != nil {
				t.Fatalf("%q: the answer is not JSON: %v", frame, e)
			}
			return
		}
		kinds := 0
		for _, is := range []bool{m.IsRequest(), m.IsNotification(), m.IsResponse()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Fatalf("%q is %d kinds of message", frame, kinds)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	small := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"files_read","arguments":{"path":"/srv/x"},"_meta":{"progressToken":"t"}}}`)
	large := []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum ", 87_000) + `"}]}}`)
	for name, frame := range map[string][]byte{"call": small, "1MB-result": large} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Parse(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
