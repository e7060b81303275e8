//go:build interop

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server with the TypeScript SDK is edited while a client uses it.
func TestInteropDevRebuildsAServerInTypeScript(t *testing.T) {
	n := newNPM(t)
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	w.Cwd = filepath.Join(w.Dir, "words")
	require.NoError(t, os.MkdirAll(filepath.Join(w.Cwd, "src"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(n.dir, "node_modules"), filepath.Join(w.Cwd, "node_modules")))
	source, err := os.ReadFile("testdata/dev/server.ts")
	require.NoError(t, err)
	script, err := os.ReadFile("testdata/dev/build.mjs")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.Cwd, "build.mjs"), script, 0o600))
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(w.Cwd, "src", "server.ts"), []byte(text), 0o600))
	}
	write(string(source))

	out := new(e2e.Buffer)
	p := w.Start(func(cmd *exec.Cmd) { cmd.Stdout = out }, "dev", "--name", "words", "--build", n.node+" build.mjs", "--", n.node, "dist/server.mjs")
	shows := func(text string) {
		t.Helper()
		e2e.Eventually(t, text, func() bool { return strings.Contains(out.String(), text) })
	}
	shows(": 1 tool\n")
	config := regexp.MustCompile(`--config (\S+)"`).FindStringSubmatch(p.Stderr.String())
	require.NotNil(t, config, p.Stderr.String())
	c := w.Pipe("stdio", "--config", config[1])
	c.Init()
	require.Equal(t, "2 words", c.CallText("words_count", e2e.Obj{"text": "two words"}))

	write(strings.Replace(string(source), "z.string().optional()", "z.string(", 1))
	shows("build failed after ")
	require.Equal(t, "2 words", c.CallText("words_count", e2e.Obj{"text": "two words"}))

	write(strings.NewReplacer(
		"z.string().optional()", "z.string()",
		"// more tools", `server.registerTool("shout", { inputSchema: { text: z.string() } }, async ({ text }: { text: string }) => ({ content: [{ type: "text", text: text.toUpperCase() }] }));`,
	).Replace(string(source)))
	shows(": +1 ~1\n")
	shows("  ~ tool count: argument \"unit\" is now required\n")
	shows("  + tool shout\n")
	require.Equal(t, "HELLO", c.CallText("words_shout", e2e.Obj{"text": "hello"}))
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	require.Empty(t, w.Survivors("server.mjs", e2e.Patience, nil))
}
