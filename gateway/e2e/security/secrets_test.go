//go:build e2e

package security

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// sentinel is in every secret of these tests and in nothing else.
const sentinel = "s3ntinel"

// keepsSecret fails if a text holds a secret.
func keepsSecret(w *e2e.World, where, text string) {
	w.T.Helper()
	if at := strings.Index(text, sentinel); at >= 0 {
		w.T.Errorf("%s: %s", where, text[max(0, at-300):min(len(text), at+100)])
	}
}

// keepsSecretInFiles checks all files that Goblin has written.
func keepsSecretInFiles(w *e2e.World) {
	w.T.Helper()
	for _, dir := range []string{"home", "run", "cfg"} {
		require.NoError(w.T, filepath.WalkDir(filepath.Join(w.Dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			keepsSecret(w, path, string(text))
			return err
		}))
	}
}

func TestH06_SecretsInArgumentsAndPathsAreHidden(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = []string{"API_KEY=" + sentinel + "-variable"}
	w.Log = e2e.Obj{"level": "debug"}
	w.Gateway["startup_wait"] = "500ms"
	b, _ := w.Fake("shell", e2e.Obj{})
	b.Conf["command"] = "/bin/sh"
	b.Conf["args"] = []string{
		"-c", `echo "$0 got $@" >&2; exit 3`, "program", "${API_KEY}", "--token", sentinel + "-flag", "--pass=" + sentinel + "-value", "Authorization: Bearer " + sentinel + "-header",
	}
	r := w.Remote("remote", "/mcp", e2e.Obj{"on": e2e.Obj{"http": e2e.Actions(e2e.Do("status", e2e.Obj{"code": 500, "text": "no /k/" + sentinel + "-variable here"}))}})
	r.Conf["url"] = r.Conf["url"].(string) + "/k/${API_KEY}"
	c := w.Standalone()
	for _, server := range []string{"shell", "remote"} {
		keepsSecret(w, "an error", c.Request("tools/call", e2e.Obj{"name": server + "/x"}).Raw)
	}
	e2e.Eventually(t, "the log", func() bool {
		return strings.Contains(c.Prog.Stderr.String(), "program got [hidden] --token [hidden] --pass=[hidden]")
	})
	keepsSecret(w, "the log", c.Prog.Stderr.String())
	for _, args := range [][]string{{"list", "servers"}, {"list", "servers", "--json"}, {"validate", "--json"}, {"read", "goblin://servers"}} {
		out := w.Run(args...)
		keepsSecret(w, strings.Join(args, " "), out.Stdout+out.Stderr)
	}
	keepsSecretInFiles(w)
}

func TestP10_ServersGetNoSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "${GOBLIN_TOKEN}"
	w.Env = []string{"GOBLIN_TOKEN=" + sentinel + "-token", "AWS_SECRET_ACCESS_KEY=" + sentinel + "-ambient", "MINE=mine", "NAMED=named", "TMPDIR=" + w.Dir}
	environ := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}}
	w.Backend("least", environ, e2e.Obj{"env": e2e.Obj{"KEY": "${MINE}"}})
	w.Backend("named", environ, e2e.Obj{"inherit_env": []string{"NAMED"}})
	for _, open := range e2e.Variants(1, w.Standalone, w.Bridged) {
		c := open()
		least := c.CallText("least_env", e2e.Obj{})
		require.Contains(t, least, `"KEY=mine"`)
		for _, other := range []string{"NAMED=", "MINE=", "GOBLIN", "XDG_", "AWS"} {
			require.NotContains(t, least, `"`+other)
		}
		named := c.CallText("named_env", e2e.Obj{})
		require.Contains(t, named, `"NAMED=named"`)
		keepsSecret(w, "the environment", least+named)
		c.Close()
	}
}
