package paste_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/tui/paste"
)

const (
	start = "\x1b[200~"
	end   = "\x1b[201~"
)

// terminal returns its reads one by one; each takes a second.
type terminal struct {
	reads []string
	now   time.Time
	pause time.Duration
}

func (t *terminal) Read(p []byte) (int, error) {
	if len(t.reads) == 0 {
		return 0, io.EOF
	}
	t.now = t.now.Add(t.pause)
	n := copy(p, t.reads[0])
	if t.reads[0] = t.reads[0][n:]; t.reads[0] == "" {
		t.reads = t.reads[1:]
	}
	return n, nil
}

// received returns the keys for the UI, with pastes in brackets.
func received(t *testing.T, in *terminal) string {
	t.Helper()
	r := paste.NewReader(in, func() time.Time { return in.now })
	keys, err := io.ReadAll(r)
	require.NoError(t, err)
	parts := strings.Split(string(keys), start+end)
	text := parts[0]
	for _, rest := range parts[1:] {
		switch msg := r.Filter(nil, tea.KeyMsg{Paste: true}).(type) {
		case tea.KeyMsg:
			require.True(t, msg.Paste)
			text += "<" + string(msg.Runes) + ">"
		case paste.Refused:
			text += "<refused>"
		}
		text += rest
	}
	require.Nil(t, r.Filter(nil, tea.KeyMsg{Paste: true}), "no other paste")
	return text
}

func TestPastesKeepTheirTextAndOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"keys":               {"jk\x1b[A\x1bOB", "jk\x1b[A\x1bOB"},
		"between keys":       {"j" + start + "text" + end + "k", "j<text>k"},
		"several":            {start + "a" + end + "x" + start + "b" + end, "<a>x<b>"},
		"empty":              {start + end, "<>"},
		"a nested start":     {start + "a" + start + "b" + end + "c", "<a" + start + "b>c"},
		"only an end":        {"a" + end + "b", "a" + end + "b"},
		"control characters": {start + "\x1b[2J\x1b]0;x\a\x03\r\n" + end, "<\x1b[2J\x1b]0;x\a\x03\r\n>"},
		"invalid UTF-8":      {start + "a\xff\xc3" + end, "<a\ufffd\ufffd>"},
		"almost an end":      {start + "\x1b[201\x1b[201" + end, "<\x1b[201\x1b[201>"},
		"after an escape":    {"\x1b" + start + "é" + end, "\x1b<é>"},
		"too long":           {start + strings.Repeat("x", paste.Limit+1) + end + "k", "<refused>k"},
		"the longest":        {start + strings.Repeat("x", paste.Limit) + end + "k", "<" + strings.Repeat("x", paste.Limit) + ">k"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, received(t, &terminal{reads: []string{c.in}}))
			if len(c.in) > 100 {
				return
			}
			for at := 1; at < len(c.in); at++ {
				got := received(t, &terminal{reads: []string{c.in[:at], c.in[at:]}})
				for _, early := range []string{"\x1b[", "\x1b"} { // passed on before the start was known
					if strings.HasSuffix(c.in[:at], early) && strings.HasPrefix(c.in[at-len(early):], start) {
						got = strings.Replace(got, early+"<", "<", 1)
						break
					}
				}
				require.Equal(t, c.want, got, "split at %d", at)
			}
		})
	}
}

func TestAKeyEndsAPasteWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"\x1b", "\x03"} {
		in := &terminal{reads: []string{start + "te", "xt", key, "j"}, pause: 3 * time.Second}
		require.Equal(t, "<text>j", received(t, in))
	}
	quick := &terminal{reads: []string{start + "te\x03", "\x1b", end}, pause: time.Millisecond}
	require.Equal(t, "<te\x03\x1b>", received(t, quick), "part of the paste")
	in := &terminal{reads: []string{start + "text"}}
	r := paste.NewReader(in, func() time.Time { return in.now })
	_, err := r.Read(make([]byte, 9))
	require.ErrorIs(t, err, io.EOF)
	require.False(t, r.Stalled())
	in.now = in.now.Add(3 * time.Second)
	require.True(t, r.Stalled())
}

// Bubble Tea waits for more after a full read. It takes the end of others for the end of a
// key.
func TestReadsEndWithKeys(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("é\x1b[<0;10;20M", 1000)
	var reads []string
	for at := 0; at < len(in); at += 4096 {
		reads = append(reads, in[at:min(at+4096, len(in))])
	}
	r := paste.NewReader(&terminal{reads: reads}, time.Now)
	var all bytes.Buffer
	for p := make([]byte, 256); ; {
		n, err := r.Read(p)
		if errors.Is(err, io.EOF) {
			break
		}
		all.Write(p[:n])
		require.Less(t, n, len(p))
		require.Contains(t, []byte("M\xa9"), p[n-1])
	}
	require.Equal(t, in, all.String())
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("j"+start+"text"+end+"k"), uint8(3))
	f.Add([]byte("\x1b"+start+"\x1b[201"+end+"\x1b[<1;2"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var want []string
		for rest := string(data); ; {
			_, text, open := strings.Cut(rest, start)
			text, after, closed := strings.Cut(text, end)
			if !open || !closed {
				break
			}
			want, rest = append(want, string([]rune(text))), after
		}
		in := &terminal{}
		for rest := data; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			in.reads, rest = append(in.reads, string(rest[:n])), rest[n:]
		}
		r := paste.NewReader(in, func() time.Time { return in.now })
		keys, err := io.ReadAll(r)
		require.NoError(t, err)
		require.LessOrEqual(t, len(keys), len(data)+len(want)*len(start+end))
		for _, text := range want {
			require.Equal(t, tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true}, r.Filter(nil, tea.KeyMsg{Paste: true}))
		}
		require.Nil(t, r.Filter(nil, tea.KeyMsg{Paste: true}))
	})
}
