//go:build release

package e2e_test

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// version returns the version of the release in dist.
func version(t *testing.T) string {
	t.Helper()
	var about struct{ Version string }
	decode(t, filepath.Join(root, "dist/metadata.json"), &about)
	require.NotEmpty(t, about.Version)
	return about.Version
}

func decode(t *testing.T, file string, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(readBytes(t, file), to), file)
}

func readBytes(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

// one returns the only file that matches a pattern.
func one(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	require.NoError(t, err)
	require.Len(t, files, 1, pattern)
	return files[0]
}

func sum(t *testing.T, file string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256(readBytes(t, file)))
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, said)
	return string(said)
}

func TestRelease_TheSumsAreThoseOfAllFiles(t *testing.T) {
	found := map[string]bool{}
	for line := range strings.Lines(string(readBytes(t, filepath.Join(root, "dist/SHA256SUMS")))) {
		wanted, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		file := filepath.Join(root, "dist", name)
		if strings.HasSuffix(name, ".mcpb") {
			file = filepath.Join(root, "dist-extras/bundles", name)
		}
		require.Equal(t, wanted, sum(t, file), name)
		found[name] = true
	}
	v := version(t)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, machine := range []string{"amd64", "arm64"} {
			suffix := ".tar.gz"
			if system == "windows" {
				suffix = ".zip"
			}
			require.Contains(t, found, "goblin_"+v+"_"+system+"_"+machine+suffix)
			require.Contains(t, found, "goblin_"+v+"_"+system+"_"+machine+".mcpb")
		}
	}
	for _, machine := range []string{"amd64", "arm64"} {
		for _, format := range []string{"deb", "rpm"} {
			require.Contains(t, found, "goblin_"+v+"_linux_"+machine+"."+format)
		}
	}
}

func TestRelease_TheDebianPackageIsInstalledAndLeavesNothing(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs dpkg, and root")
	}
	if _, err := os.Stat("/usr/bin/goblin"); err == nil {
		t.Skip("Goblin is installed here")
	}
	deb := one(t, "dist/goblin_*_linux_"+runtime.GOARCH+".deb")
	t.Cleanup(func() { _ = exec.Command("dpkg", "--purge", "goblin").Run() })
	command(t, "dpkg", "-i", deb)
	require.Contains(t, command(t, "/usr/bin/goblin", "version"), "goblin "+version(t))
	held := strings.Fields(command(t, "dpkg", "-L", "goblin"))
	for _, file := range []string{
		"/usr/share/man/man1/goblin.1.gz", "/usr/share/man/man1/goblin-list.1.gz",
		"/usr/share/bash-completion/completions/goblin", "/usr/share/zsh/vendor-completions/_goblin",
		"/usr/share/fish/vendor_completions.d/goblin.fish", "/usr/share/doc/goblin/copyright",
	} {
		require.Contains(t, held, file)
	}
	command(t, "gzip", "-t", "/usr/share/man/man1/goblin.1.gz")
	command(t, "bash", "-n", "/usr/share/bash-completion/completions/goblin")
	command(t, "dpkg", "-r", "goblin")
	for _, file := range held {
		if !strings.Contains(filepath.Base(file), "goblin") {
			continue // a shared folder
		}
		require.NoFileExists(t, file)
		require.NoDirExists(t, file)
	}
}

func TestRelease_ABundleIsAServer(t *testing.T) {
	v := version(t)
	z, err := zip.OpenReader(filepath.Join(root, "dist-extras/bundles", fmt.Sprintf("goblin_%s_%s_%s.mcpb", v, runtime.GOOS, runtime.GOARCH)))
	require.NoError(t, err)
	defer z.Close()
	folder := t.TempDir()
	for _, f := range z.File {
		in, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		to := filepath.Join(folder, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, text, f.Mode()))
	}
	var manifest struct {
		Version string
		Server  struct {
			Type       string
			EntryPoint string `json:"entry_point"`
			MCP        struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		Compatibility struct{ Platforms []string }
	}
	decode(t, filepath.Join(folder, "manifest.json"), &manifest)
	require.Equal(t, v, manifest.Version)
	require.Equal(t, "binary", manifest.Server.Type)
	require.Equal(t, []string{runtime.GOOS}, manifest.Compatibility.Platforms)
	require.FileExists(t, filepath.Join(folder, manifest.Server.EntryPoint))

	c := exec.Command(strings.ReplaceAll(manifest.Server.MCP.Command, "${__dirname}", folder), manifest.Server.MCP.Args...)
	home := t.TempDir()
	c.Env = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" + os.Getenv("PATH")}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n")
	require.NoError(t, err)
	answer, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, answer, `"serverInfo":{"name":"goblin"`)
	require.NoError(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	require.NoError(t, c.Wait())
}

func TestRelease_TheServerJSONNamesTheBundles(t *testing.T) {
	var server struct {
		Schema      string `json:"$schema"`
		Name        string
		Description string
		Version     string
		Packages    []struct{ RegistryType, Identifier, FileSha256 string }
	}
	decode(t, filepath.Join(root, "dist-extras/bundles/server.json"), &server)
	require.Equal(t, version(t), server.Version)
	require.Regexp(t, `^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`, server.Name)
	require.LessOrEqual(t, len(server.Description), 100, "what the schema allows")
	require.Len(t, server.Packages, 6)
	for _, p := range server.Packages {
		require.Equal(t, "mcpb", p.RegistryType)
		require.Equal(t, p.FileSha256, sum(t, filepath.Join(root, "dist-extras/bundles", p.Identifier[strings.LastIndex(p.Identifier, "/")+1:])))
	}
}

func TestRelease_HasNotes(t *testing.T) {
	require.Regexp(t, `(?m)^- \S`, string(readBytes(t, filepath.Join(root, "dist/release-notes.md"))))
}

// The manifests for package managers name archives of this release, with their sums.
func TestRelease_ManifestsNameTheArchives(t *testing.T) {
	sums := string(readBytes(t, filepath.Join(root, "dist/SHA256SUMS")))
	for manager, pattern := range map[string]string{
		"Homebrew": "dist/homebrew/Casks/goblin.rb",
		"Scoop":    "dist/scoop/goblin.json",
		"winget":   "dist/winget/manifests/*/*/*/*/*.installer.yaml",
	} {
		found := regexp.MustCompile(`(?i)\b[0-9a-f]{64}\b`).FindAllString(string(readBytes(t, one(t, pattern))), -1)
		require.NotEmpty(t, found, manager)
		for _, sum := range found {
			require.Contains(t, sums, strings.ToLower(sum), manager)
		}
	}
}

// Without a container daemon no image is built; the test checks the inputs of its steps.
func TestRelease_TheImageFindsWhatItsStepsNeed(t *testing.T) {
	text := strings.ReplaceAll(string(readBytes(t, filepath.Join(root, "gateway/deploy/Dockerfile"))), "\\\n", "")
	require.Regexp(t, `(?m)^FROM .* AS goblin$`, text)
	require.Regexp(t, `(?m)^FROM goblin AS full$`, text)
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs apt-get")
	}
	for _, step := range regexp.MustCompile(`apt-get install -y --no-install-recommends ([\w .+-]+?) *&&`).FindAllStringSubmatch(text, -1) {
		command(t, "apt-get", append([]string{"install", "--simulate", "--no-install-recommends"}, strings.Fields(step[1])...)...)
	}
	users := regexp.MustCompile(`(?m)^USER (\w+)$`).FindAllStringSubmatch(text, -1)
	require.Equal(t, "goblin", users[len(users)-1][1], "nothing runs as root")
}

func TestRelease_TheInstallScriptTakesThisRelease(t *testing.T) {
	releases := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(root, "dist"))))
	defer releases.Close()
	prefix := t.TempDir()
	c := exec.Command("sh", root+"/gateway/deploy/install.sh")
	c.Env = append(os.Environ(), "GOBLIN_RELEASES="+releases.URL, "PREFIX="+prefix)
	said, err := c.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, command(t, filepath.Join(prefix, "bin/goblin"), "version"), version(t))
	require.FileExists(t, filepath.Join(prefix, "share/man/man1/goblin.1.gz"))
}
