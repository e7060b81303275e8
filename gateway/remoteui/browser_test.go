//go:build unix && !darwin

package remoteui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/browser"
	"goblin/gateway/e2e"
)

// told returns the arguments and environment of a started browser. A script writes them
// to a pipe.
func told(t *testing.T, env map[string]string, page string) (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, name := range []string{"xdg-open", "my browser"} {
		script := "#!/bin/sh\necho \"$(basename \"$0\") $*\" >\"$OUT\"\n"
		e2e.WriteProgram(t, filepath.Join(dir, name), script)
	}
	t.Setenv("OUT", pipe)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := browser.Open(func(name string) string { return env[name] }, page); err != nil {
		return "", err
	}
	text, err := os.ReadFile(pipe)
	return string(text), err
}

func TestTheUsersBrowserOpensThePage(t *testing.T) {
	const page = "https://example.com/?a=1&b=2"
	ssh := "10.0.0.1 1 10.0.0.2 22"
	for name, c := range map[string]struct {
		env         map[string]string
		page, want  string
		errContains string
	}{
		"the system's":         {map[string]string{}, page, "xdg-open " + page + "\n", ""},
		"$BROWSER":             {map[string]string{"BROWSER": "my browser"}, page, "my browser " + page + "\n", ""},
		"with arguments":       {map[string]string{"BROWSER": "xdg-open --at %s --new"}, page, "xdg-open --at " + page + " --new\n", ""},
		"the first there is":   {map[string]string{"BROWSER": "nothing-like-it:xdg-open -n"}, page, "xdg-open -n " + page + "\n", ""},
		"none there":           {map[string]string{"BROWSER": "nothing-like-it"}, page, "", "nothing-like-it"},
		"over SSH":             {map[string]string{"SSH_CONNECTION": ssh}, page, "", "SSH"},
		"over SSH with a wish": {map[string]string{"SSH_CONNECTION": ssh, "BROWSER": "my browser"}, page, "my browser " + page + "\n", ""},
		"over SSH with X":      {map[string]string{"SSH_CONNECTION": ssh, "DISPLAY": ":10"}, page, "xdg-open " + page + "\n", ""},
		"no web page":          {map[string]string{}, "file:///etc/passwd", "", "not an http"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := told(t, c.env, c.page)
			if c.errContains != "" {
				require.ErrorContains(t, err, c.errContains)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
