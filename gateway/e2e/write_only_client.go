//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/stretchr/testify/require"
)

var answerHead = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),`)

// WriteOnlyClient is a client that only reads while ReadAnswers runs. Until then,
// messages to it fill its pipe.
type WriteOnlyClient struct {
	*Program
	In  *os.File
	Out *os.File
}

func (w *World) WriteOnlyClient(args ...string) *WriteOnlyClient {
	w.T.Helper()
	m := &WriteOnlyClient{}
	in, stdin, err := os.Pipe()
	require.NoError(w.T, err)
	stdout, out, err := os.Pipe()
	require.NoError(w.T, err)
	m.In, m.Out = stdin, stdout
	w.T.Cleanup(func() {
		_ = m.In.Close()
		_ = m.Out.Close()
	})
	m.Program = w.Start(func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out }, args...)
	_ = in.Close()
	_ = out.Close()
	_, err = io.WriteString(m.In, InitBody+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(w.T, err)
	return m
}

// Call sends one tool call.
func (m *WriteOnlyClient) Call(id int, name string) {
	m.T.Helper()
	_, err := fmt.Fprintf(m.In, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`+"\n", id, name)
	require.NoError(m.T, err)
}

// ReadAnswers reads responses to n requests, including initialize, and returns the length
// of each by its id.
func (m *WriteOnlyClient) ReadAnswers(n int) map[string]int {
	m.T.Helper()
	require.NoError(m.T, m.Out.SetReadDeadline(time.Now().Add(2*Patience)))
	got := map[string]int{}
	for r := bufio.NewReaderSize(m.Out, 1<<20); len(got) < n; {
		line, err := r.ReadBytes('\n')
		require.NoError(m.T, err, "after %d answers", len(got))
		var head struct{ ID json.RawMessage }
		if found := answerHead.FindSubmatch(line[:min(len(line), 100)]); found != nil {
			head.ID = found[1] // decoding megabytes would be too slow
		} else {
			require.NoError(m.T, json.Unmarshal(line, &head))
		}
		if head.ID != nil {
			require.NotContains(m.T, got, string(head.ID), "two answers")
			got[string(head.ID)] = len(line)
		}
	}
	return got
}
