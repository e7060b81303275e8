//go:build e2e

package security

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server gets the values that its config refers to; other servers and clients never see
// them. A server with an unresolved reference is stopped alone, reports the reason, and
// starts after a fix.
func TestReferencesReachTheServerAndNobodyElse(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug"}
	ran := filepath.Join(w.Dir, "ran")
	program := filepath.Join(w.Dir, "give me")
	e2e.WriteProgram(t, program, "#!/bin/sh\necho >> '"+ran+"'\necho \"$1-"+sentinel+"-of-cmd\"\n")
	file := filepath.Join(w.Dir, "token")
	require.NoError(t, os.WriteFile(file, []byte(sentinel+"-of-file\n"), 0o600))
	environ := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}}
	w.Backend("good", environ, e2e.Obj{"env": e2e.Obj{
		"BY_FILE": "${file:" + file + "}", "BY_CMD": "${cmd:'" + program + "' \"a b;\"}", "BY_NAME": "${keyring:team/key}",
	}})
	w.Backend("plain", environ, nil)

	require.Zero(t, w.Run("validate").Code)
	_, err := os.Stat(ran)
	require.Error(t, err, "to validate runs nothing")

	c := w.Standalone()
	require.Contains(t, c.CallText("plain_env", e2e.Obj{}), "PATH=", "other servers run")
	const missing = `${keyring:team/key} ("BY_NAME" in env of server "good") is not set; run: goblin secret set team/key; then run: goblin restart good`
	e2e.Eventually(t, "the log contains the reason", func() bool {
		return strings.Contains(strings.ReplaceAll(c.Prog.Stderr.String(), `\"`, `"`), missing)
	})
	keepsSecret(w, "the log", c.Prog.Stderr.String())
	c.Close()
	report := w.Run("doctor", "good")
	require.Equal(t, 1, report.Code)
	require.Contains(t, report.Stdout, "${keyring:team/key}")
	require.Contains(t, report.Stdout, "goblin secret set team/key")
	keepsSecret(w, "doctor", report.Stdout+report.Stderr)

	out := w.RunInput(sentinel+"-of-store\n", "secret", "set", "team/key")
	require.Zero(t, out.Code, out.Stderr)
	keepsSecret(w, "secret set", out.Stdout+out.Stderr)

	c = w.Standalone()
	environment := c.CallText("good_env", e2e.Obj{})
	for _, want := range []string{`"BY_FILE=[hidden]"`, `"BY_CMD=[hidden]"`, `"BY_NAME=[hidden]"`} {
		require.Contains(t, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(environment,
			sentinel+"-of-file", "[hidden]"), "a b;-"+sentinel+"-of-cmd", "[hidden]"), sentinel+"-of-store", "[hidden]"), want)
	}
	require.NotContains(t, c.CallText("plain_env", e2e.Obj{}), sentinel)
	keepsSecret(w, "the log", c.Prog.Stderr.String())
	for _, args := range [][]string{{"list", "servers", "--json"}, {"validate", "--json"}, {"doctor", "good", "--json"}, {"secret", "list", "--json"}} {
		out := w.Run(args...)
		keepsSecret(w, strings.Join(args, " "), out.Stdout+out.Stderr)
	}
	require.Equal(t, sentinel+"-of-store\n", w.Run("secret", "get", "team/key").Stdout)
	require.Zero(t, w.Run("secret", "rm", "team/key").Code)
}
