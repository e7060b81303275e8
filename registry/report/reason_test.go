package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/report"
)

func TestAReasonBeginsWithTheWordsOfTheServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"the process exited: exit status 1; output: A is not set; A is not set; set A":             "9 tries; A is not set; set A",
		`command "no-such" not found; install it`:                                                  "9 tries; no-such not found; install it",
		"cannot reach the server: dial tcp 127.0.0.1:29871: connect: connection refused":           "9 tries; 127.0.0.1:29871: connect: connection refused",
		"cannot reach the server: dial tcp: lookup none.invalid on 10.255.255.53:53: no such host": "9 tries; lookup none.invalid on 10.255.255.53:53: no such host",
		"the process exited: exit status 1":                                                        "9 tries; the process exited: exit status 1",
	} {
		require.Equal(t, want, report.Reason(text, 9))
	}
	require.Equal(t, "broken pipe", report.Reason("broken pipe", 1))
}
