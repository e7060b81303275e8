package servercheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func newChecker() *checker {
	return &checker{
		o: Options{MaxTokens: DefaultMaxTokens}, r: &Result{}, counts: map[string]int{}, known: map[Finding]bool{}, entries: map[registry.Kind][][]byte{},
	}
}

func FuzzOutput(f *testing.F) {
	for _, text := range []string{
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", "\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\n\"id\":\"1\",\n\"error\":{}}\r\n", "[{\"id\":null,\"error\":null,\"result\":3}]",
		"{\n{\n}\n}\n\n", "{\"method\":7}\n{\"method\":\"x\",\"id\":{}}\n{\"method\":\"notifications/x\"}", "\x00\xff\n[]\n[1]\n[{}]\n", `{"jsonrpc":"2.0","id":1e400,"result":{}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := newChecker()
		c.o.Redact = func(s string) string { return s }
		replies := 0
		o := newOutput(c, func([]byte) { replies++ })
		o.expect(1)
		o.read(strings.NewReader(string(text)))
		<-o.ended
		lines := strings.Count(string(text), "\n") + 1
		if !strings.Contains(string(text), "[") {
			require.LessOrEqual(t, replies, lines)
		}
		require.LessOrEqual(t, len(c.r.Findings), maxPerRule*len(rules))
		for _, found := range c.r.Findings {
			require.Less(t, len(found.Text), 10*maxText)
			require.NotContains(t, found.Text, "\x1b")
		}
	})
}

func FuzzDefinitions(f *testing.F) {
	for _, def := range []string{
		`{"name":"a","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}},"_meta":{"a/b":1,"":2}}`,
		`{"name":"a","inputSchema":{"$schema":"x:y","$id":"::","pattern":"("},"outputSchema":{"$ref":"https://x.example/"},"annotations":{"readOnlyHint":"true"}}`,
		`{"name":"\u001b[2J","inputSchema":{"$anchor":"a","$dynamicRef":"#b","type":["x"]}}`, `7`, `{"uri":"a","uriTemplate":"{","arguments":[null,{"name":7}]}`,
	} {
		f.Add([]byte(def))
	}
	f.Fuzz(func(t *testing.T, def []byte) {
		c := newChecker()
		c.o.Redact = func(s string) string { return s }
		o := newOutput(c, func([]byte) {})
		o.expect(1)
		o.read(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":` + string(def) + `}`)) // drops what is not JSON
		select {
		case a := <-o.answers:
			for i := range kinds {
				c.checkEntry(&kinds[i], 0, a.result)
			}
			c.readHandshake(a.result)
		default:
		}
		for _, found := range c.r.Findings {
			require.NotContains(t, found.Subject+found.Text, "\x1b")
		}
	})
}
