//go:build release && unix

package e2e_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const (
	publishedModule  = "codeberg.org/owner/goblin"
	publishedVersion = "v0.1.0"
)

// TestInstallFromAModuleProxy publishes a copy of this repository under another path in a proxy
// of files, and installs it from there. Dependencies come from the module cache, so no network
// is used.
func TestInstallFromAModuleProxy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	files := copyRepository(t, dir)
	rename := []string{"run", "./gateway/deploy/renamemodule", "-root", dir, "-contact", "a@example.com", "-module"}
	inFolder(t, root, "go", append(rename, publishedModule)...)

	// Every package has its imports, also with build tags and in tests.
	tags := "interop,conformance,agents,soak,faults,e2e,systems,bench,release,man"
	broken := inFolder(t, dir, "go", "list", "-tags", tags, "-test", "-deps", "-e", "-f", "{{with .Error}}{{.}}{{end}}", "./...")
	require.Empty(t, strings.TrimSpace(broken))

	proxy, bin := t.TempDir(), t.TempDir()
	publish(t, proxy, dir, files)
	cache := strings.TrimSpace(inFolder(t, root, "go", "env", "GOMODCACHE"))
	install := exec.Command("go", "install", publishedModule+"@"+publishedVersion)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(),
		"GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOSUMDB=off", "GONOSUMDB=", "GONOPROXY=", "GOPRIVATE=",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache/download"), "GOFLAGS=-modcacherw "+os.Getenv("GOFLAGS"))
	out, err := install.CombinedOutput()
	require.NoError(t, err, string(out))

	version := exec.Command(filepath.Join(bin, "goblin"), "version")
	version.Env = append(e2e.NewWorld(t).Environ(), "TERM=xterm-256color")
	terminal, err := pty.Start(version)
	require.NoError(t, err)
	defer terminal.Close()
	written, _ := io.ReadAll(terminal) // Linux returns an error when the process has exited
	require.NoError(t, version.Wait())
	require.Regexp(t, `^goblin 0\.1\.0 \([^,]*, [^,]*\)\r\n$`, string(written), "no query of the terminal, and no build")
}

// inFolder runs a command, which must succeed, and returns its stdout.
func inFolder(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = dir, &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %v: %s", name, args, &stderr)
	return string(out)
}

// copyRepository copies the files of the repository into a new folder and returns their names.
func copyRepository(t *testing.T, to string) (names []string) {
	t.Helper()
	list := inFolder(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted and not committed
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o644))
		names = append(names, name)
	}
	return names
}

// publish puts a module into a proxy: see https://go.dev/ref/mod#goproxy-protocol.
func publish(t *testing.T, proxy, dir string, names []string) {
	t.Helper()
	versions := filepath.Join(proxy, publishedModule, "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(versions, name), text, 0o644))
	}
	write("list", []byte(publishedVersion+"\n"))
	write(publishedVersion+".info", []byte(`{"Version":"`+publishedVersion+`"}`))
	write(publishedVersion+".mod", readBytes(t, filepath.Join(dir, "go.mod")))

	var nested []string // modules in folders are no part of this one
	for _, name := range names {
		if folder, ok := strings.CutSuffix(name, "/go.mod"); ok {
			nested = append(nested, folder+"/")
		}
	}
	var text bytes.Buffer
	z := zip.NewWriter(&text)
next:
	for _, name := range names {
		for _, folder := range nested {
			if strings.HasPrefix(name, folder) {
				continue next
			}
		}
		w, err := z.Create(publishedModule + "@" + publishedVersion + "/" + name)
		require.NoError(t, err)
		_, err = w.Write(readBytes(t, filepath.Join(dir, name)))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	write(publishedVersion+".zip", text.Bytes())
}
