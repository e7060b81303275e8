package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const root = "../.."

// examples are the documents whose examples are tested here; meta has its own tests.
var examples = []string{"README.md", "gateway/*.md", "gateway/config/README.md", "registry/README.md", "registry/export/README.md", "registry/savedcall/README.md", "tui/README.md"}

// block is an example of a document.
type block struct{ where, language, text string }

func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, pattern := range examples {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			var open *block
			for n, line := range strings.Split(read(t, file), "\n") {
				language, fence := strings.CutPrefix(line, "```")
				switch {
				case fence && open == nil:
					open = &block{where: fmt.Sprintf("%s:%d", strings.TrimPrefix(file, root+"/"), n+1), language: language}
				case fence:
					all, open = append(all, *open), nil
				case open != nil:
					open.text += line + "\n"
				}
			}
			require.Nil(t, open, "%s ends in an example", file)
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// demo returns a world without a config, in which the shell finds Goblin. Fake programs
// replace the ones that download or install something.
func demo(t *testing.T) *e2e.World {
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(e2e.Goblin, filepath.Join(bin, "goblin")))
	for name, script := range map[string]string{
		"go": `case "$*" in "run ."|"test ./..."|"install ."|"install "*/goblin@latest) ;; *) exit 1 ;; esac`,
		// The line that rename-module adds.
		"git": `case "$*" in "clone https://"*/goblin) mkdir goblin ;; *) exit 1 ;; esac`,
		// As the Inspector does, with its tools/list in each case.
		"npx": `[ "$1 $2" = "-y @modelcontextprotocol/inspector" ] || exit 1
shift 2
[ "$1" = --cli ] && shift
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"inspector","version":"1"}}}' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | "$1" "$2" | grep -q library_search_books`,
	} {
		e2e.WriteProgram(t, filepath.Join(bin, name), "#!/bin/sh\n"+script+"\n")
	}
	w.Env = append(w.Env, "OTEL_TOKEN=token", "PATH="+bin+":"+os.Getenv("PATH"))
	return w
}

func TestExamplesOfTheDocsRun(t *testing.T) {
	t.Parallel()
	w := besideDaemon(t)
	_, help := commands(t, w)
	for _, b := range blocks(t) {
		t.Run(b.where, func(t *testing.T) {
			switch b.language {
			case "sh":
				cmd := exec.Command("sh", "-e")
				cmd.Env, cmd.Dir, cmd.Stdin = w.Environ(), w.Dir, strings.NewReader(b.text)
				said, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", said)
			case "yaml":
				switch {
				case strings.HasPrefix(b.text, "ignore:"):
					areReplayRules(t, w, b.text)
				case savedCall.MatchString(b.text):
					passes(t, w, b)
				case strings.Contains(b.text, "runs-on:"):
					for _, run := range regexp.MustCompile(`run: (goblin .*)`).FindAllStringSubmatch(b.text, -1) {
						checkCommand(t, help, strings.Fields(run[1]))
					}
				default:
					isConfig(t, w, b.text)
				}
			case "json":
				isClientConfig(t, w, b.text)
			case "lua":
				out := w.RunInput(b.text, "lua", "-")
				require.Zero(t, out.Code, out.Stderr)
			case "console": // needs files or programs of the reader, or does not end
				for line := range strings.Lines(b.text) {
					checkCommand(t, help, strings.Fields(line))
				}
			case "text": // tui draws this picture, and the other one is a drawing
				require.Regexp(t, `^((gateway/)?README|gateway/(TESTS|DEV))\.md:`, b.where)
			default:
				t.Fatalf("no test runs an example in %q", b.language)
			}
		})
	}
}

// besideDaemon returns a world with a daemon of the demo whose servers are all running.
func besideDaemon(t *testing.T) *e2e.World {
	w := demo(t)
	port := e2e.FreePort(t)
	w.Start(nil, "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", port))
	e2e.Eventually(t, "the daemon is ready", func() bool {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", port))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return w
}

// isConfig checks that Goblin accepts a config.
func isConfig(t *testing.T, w *e2e.World, text string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)^(servers|mcpServers):`).MatchString(text) {
		text += "servers: {example: {command: sh}}\n"
	}
	file := filepath.Join(w.Dir, "example.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out := w.Run("validate", "--config", file)
	require.Zero(t, out.Code, out.Stderr)
	require.Empty(t, out.Stderr, "no warnings")
}

// areReplayRules checks that Goblin accepts rules, which it reads before the recording.
func areReplayRules(t *testing.T, w *e2e.World, text string) {
	t.Helper()
	file := filepath.Join(w.Dir, "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out := w.Run("stdio", "--replay", "none.jsonl", "--rules", file)
	require.Equal(t, e2e.ExitNotFound, out.Code, out.Stderr)
}

var savedCall = regexp.MustCompile(`(?m)^(call|read|prompt): `)

// passes runs a saved call after the earlier ones of its document, which it may need.
func passes(t *testing.T, w *e2e.World, b block) {
	t.Helper()
	document, line, _ := strings.Cut(b.where, ":")
	folder := filepath.Join(w.Dir, strings.ReplaceAll(document, "/", "-"))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%05s.yaml", line)), []byte(b.text), 0o600))
	w.Succeeds("test", folder)
}

// isClientConfig runs an entry of a client's config as the client would.
func isClientConfig(t *testing.T, w *e2e.World, text string) {
	t.Helper()
	var file map[string]struct {
		Goblin struct {
			Command, URL string
			Args         []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &file))
	require.Len(t, file, 1)
	for _, servers := range file {
		if entry := servers.Goblin; entry.URL != "" {
			require.Contains(t, w.Succeeds("serve", "--help"), strings.TrimSuffix(strings.TrimPrefix(entry.URL, "http://"), "/mcp"), "the address that serve listens on")
		} else {
			require.Equal(t, "/path/to/goblin", entry.Command)
			c := w.Pipe(entry.Args...)
			c.Init()
			c.WaitListed("tools", "library_search_books", true) // servers may be slow to start
		}
	}
}

// link matches a document's links within the project, as written: in Markdown, or in HTML
// for pictures.
var link = regexp.MustCompile(`(?:\]\(|(?:src|srcset|href)=")([^)"\s:]+)[)"]`)

func TestLinksOfTheDocsLead(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(prose(read(t, filepath.Join(root, file))), -1) {
			to, part, _ := strings.Cut(found[1], "#")
			target := file
			if to != "" {
				target = path.Join(path.Dir(file), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s: %v", file, found[1], err)
			} else if part != "" && !slices.Contains(anchors(read(t, filepath.Join(root, target))), part) {
				t.Errorf("%s: no heading for %s", file, found[1])
			}
		}
	}
}

// prose returns a document without its examples.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`").ReplaceAllString(text, "")
}

func anchors(text string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// documents returns the paths of all documents, relative to the project's root.
func documents(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git", "dist", "dist-extras"}, d.Name()):
			return fs.SkipDir
		case strings.HasSuffix(file, ".md"):
			all = append(all, strings.TrimPrefix(file, root+"/"))
		}
		return nil
	}))
	return all
}

// Documents in a release only link to files of the release.
func TestArchivesHoldWhatTheirDocsLeadTo(t *testing.T) {
	t.Parallel()
	var held []string
	for _, line := range regexp.MustCompile(`(?m)^      - ([\w./*-]+)$`).FindAllStringSubmatch(read(t, root+"/.goreleaser.yaml"), -1) {
		files, err := filepath.Glob(filepath.Join(root, line[1]))
		require.NoError(t, err)
		for _, file := range files {
			held = append(held, strings.TrimPrefix(file, root+"/"))
		}
	}
	require.Contains(t, held, "README.md")
	for _, file := range held {
		if path.Ext(file) != ".md" {
			continue
		}
		text := read(t, filepath.Join(root, file))
		for _, found := range link.FindAllStringSubmatch(prose(text), -1) {
			to, _, _ := strings.Cut(found[1], "#")
			if to = path.Join(path.Dir(file), to); path.Ext(to) == ".md" && !slices.Contains(held, to) {
				t.Errorf("%s leads to %s, which archives lack", file, to)
			}
		}
		for _, named := range regexp.MustCompile("`((?:gateway|meta|tui|registry)/[\\w./]+\\.md)`").FindAllStringSubmatch(text, -1) {
			if !slices.Contains(held, named[1]) {
				t.Errorf("%s names %s, which archives lack", file, named[1])
			}
		}
	}
}

// The README only contains what new users need.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, strings.Count(read(t, root+"/README.md"), "\n"), 150)
}
