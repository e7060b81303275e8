package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/registry/termtext"
)

// FuzzResults checks that any answer of a server reaches the terminal as text only.
func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"contents":[{"uri":"a\u001b[2J","text":"\u001b]0;x\u0007"},{"uri":"b","blob":"AA=="}]}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"\u202e"},{"type":"image","data":"x","mimeType":"a\u001bb"},{"type":"resource_link","uri":"\u009b"}],"isError":true}`))
	f.Add([]byte(`{"messages":[{"role":"us\u0000er","content":{"type":"resource","resource":{"uri":"u","text":"\r"}}},{"role":"a","content":[]}]}`))
	f.Add([]byte(`{"content":[{"type":"\u001b"}],"structuredContent":{"a":"\u001b"}}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		var out bytes.Buffer
		a := &App{App: &cli.App{Out: &out, Err: &out, OutTTY: true, ErrTTY: true, Columns: 80}}
		errs := []error{a.printRead(result), a.printCall("tool", result), a.printPrompt(result)}
		require.Equal(t, termtext.Text(out.String()), out.String())
		for _, err := range errs {
			_ = a.Report(err) // as one line, to stderr
		}
		require.Equal(t, termtext.Text(out.String()), out.String())
	})
}
