package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// modulePath is set by this program.
const modulePath = "goblin"

// repository returns a copy of the files of the repository, with the Go files of some
// folders only. TestInstallFromAModuleProxy renames all of them.
func repository(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skip("not a clone: ", err)
	}
	to := t.TempDir()
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if folder := filepath.ToSlash(filepath.Dir(string(name))); strings.HasSuffix(string(name), ".go") &&
			folder != "." && folder != "gateway/bench" && !strings.HasPrefix(folder, "gateway/deploy/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, string(name)))
		if os.IsNotExist(err) {
			continue // deleted and not committed
		}
		require.NoError(t, err)
		path := filepath.Join(to, string(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	return to
}

func TestRenameChangesWhateverNamesTheModule(t *testing.T) {
	dir := repository(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(text)
	}
	_, err := rename(dir, "codeberg.org/first/goblin", "security@example.com")
	require.NoError(t, err)
	require.Contains(t, read("go.mod"), "module codeberg.org/first/goblin\n")
	require.Contains(t, read("SECURITY.md"), "\nContact: <security@example.com>\n")
	require.Contains(t, read(".goreleaser.yaml"), "Goblin contributors <security@example.com>")

	changed, err := rename(dir, "codeberg.org/first/goblin", "security@example.com")
	require.NoError(t, err)
	require.Zero(t, changed, "the same values change nothing")

	_, err = rename(dir, "github.com/Second/goblin", "")
	require.NoError(t, err)
	contact := "\nContact: <https://github.com/Second/goblin/security/advisories/new>\n"
	for name, texts := range map[string][]string{
		"go.mod":                            {"module github.com/Second/goblin\n"},
		"main.go":                           {"\t\"github.com/Second/goblin/gateway/cli\"\n"},
		"gateway/bench/setup.go":            {"modulePath = \"github.com/Second/goblin\"\n"},
		"README.md":                         {"\ngo install github.com/Second/goblin@latest", "\ngit clone https://github.com/Second/goblin && cd goblin\n"},
		"SECURITY.md":                       {contact},
		"CODE_OF_CONDUCT.md":                {contact},
		".golangci.yml":                     {"local-prefixes: [github.com/Second/goblin]\n", "module-path: github.com/Second/goblin\n"},
		".github/ISSUE_TEMPLATE/config.yml": {"url: https://github.com/Second/goblin/blob/HEAD/SECURITY.md\n"},
		"Taskfile.yml":                      {"NAMESPACE:-io.github.Second}/goblin"},
		".goreleaser.yaml": {
			`"HOMEPAGE" "https://github.com/Second/goblin"`, `"https://github.com/Second/goblin/releases/download/vVERSION"`,
			`"OWNER" "Second"`, `"IMAGE" "ghcr.io/second/goblin"`, "<Second@users.noreply.github.com>",
		},
	} {
		for _, text := range texts {
			require.Contains(t, read(name), text, name)
		}
	}
	nothingNames(t, dir, "codeberg.org/first")
}

// nothingNames checks that no import has an old path, and no file an old host.
func nothingNames(t *testing.T, dir, oldOwner string) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Base(path) != "rename_test.go" && strings.Contains(string(text), oldOwner) {
			t.Errorf("%s still has %s", path, oldOwner)
		}
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata") {
			return nil
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			if name, _ := strconv.Unquote(i.Path.Value); name == modulePath || strings.HasPrefix(name, modulePath+"/") {
				t.Errorf("%s still imports %s", path, name)
			}
		}
		return nil
	}))
	require.Greater(t, files, 10)
}

func TestRenameRefusesBadValues(t *testing.T) {
	for _, c := range []struct{ module, contact, want string }{
		{"", "", "set MODULE to HOST/OWNER/goblin"},
		{"goblin", "", "it must be HOST/OWNER/goblin"},
		{"github.com/goblin", "", "it has 2 parts"},
		{"https://github.com/a/goblin", "", "omit the scheme"},
		{"github/a/goblin", "", `"github" is no lower-case host name`},
		{"GitHub.com/a/goblin", "", `"GitHub.com" is no lower-case host name`},
		{"git.example:8443/a/goblin", "", "without a port"},
		{"github.com/a/goblin.git", "", `the last part must be "goblin"`},
		{"github.com/a/goblin/", "", `the last part must be "goblin"`},
		{"github.com//goblin", "", `"" is no valid part`},
		{"github.com/../goblin", "", `".." is no valid part`},
		{"github.com/a b/goblin", "", `"a b" is no valid part`},
		{"github.com/$a/goblin", "", `"$a" is no valid part`},
		{"zzz.example/a/goblin", "a@example.com", `the host must sort before "unicode"`},
		{"codeberg.org/a/goblin", "", "set CONTACT to a mail address or URL"},
		{"codeberg.org/a/goblin", "me", "neither a mail address nor an https URL"},
		{"codeberg.org/a/goblin", "http://example.com", "neither a mail address nor an https URL"},
		{"codeberg.org/a/goblin", "Me <a@example.com>", "neither a mail address nor an https URL"},
	} {
		_, err := rename(t.TempDir(), c.module, c.contact)
		require.ErrorContains(t, err, c.want, c.module)
	}
	_, err := rename(t.TempDir(), "github.com/a/goblin", "")
	require.ErrorContains(t, err, "run it in the root of the repository")
}

// A file without the expected text is reported, and no other file is changed.
func TestRenameWritesAllOrNothing(t *testing.T) {
	dir := repository(t)
	security := filepath.Join(dir, "SECURITY.md")
	require.NoError(t, os.WriteFile(security, []byte("# Security\n"), 0o644))
	_, err := rename(dir, "github.com/a/goblin", "")
	require.ErrorContains(t, err, "SECURITY.md has no text like")
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(text), "module "+modulePath+"\n")
}
