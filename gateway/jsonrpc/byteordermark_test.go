package jsonrpc_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

func TestAByteOrderMarkIsSkippedBeforeTheFirstFrameOnly(t *testing.T) {
	t.Parallel()
	const mark = "\uFEFF"
	large := `{"jsonrpc":"2.0","method":"m","params":{"a":"` + strings.Repeat("x", 200<<10) + `"}}`
	for name, test := range map[string]struct {
		in   string
		want []string
	}{
		"a mark":           {mark + "{}\n{}\n", []string{"{}", "{}"}},
		"a large frame":    {mark + large + "\n", []string{large}},
		"a mark alone":     {mark, nil},
		"blanks behind it": {mark + "\r\n\n {}", []string{"{}"}},
		"half a mark":      {mark[:2], []string{mark[:2]}},
		"later ones stay":  {"{}\n" + mark + "{}\n", []string{"{}", mark + "{}"}},
		"nothing":          {"", nil},
	} {
		for how, in := range map[string]io.Reader{"whole": strings.NewReader(test.in), "by byte": iotest.OneByteReader(strings.NewReader(test.in))} {
			r := jsonrpc.NewReader(in, 1<<20).CheckWhileReading(0)
			var got []string
			for {
				frame, err := r.Read()
				if err != nil {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				if string(frame) == large {
					m, err := r.Parse(frame)
					require.NoError(t, err, name)
					require.Equal(t, "m", m.Method)
				}
				got = append(got, string(frame))
			}
			require.Equal(t, test.want, got, "%s, %s", name, how)
		}
	}
}
