package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// hiddenCommands are not in the help of the commands above them.
var hiddenCommands = []string{"daemon", "demo-server", "end-children"}

// commandLine is a line of help that names a command.
var commandLine = regexp.MustCompile(`^  ([a-z-]+) {2,}(\S.*)`)

var update = flag.Bool("update", false, "write the command reference")

// commands returns the path of each command without subcommands, such as "tools off". It
// also returns each command's help by its path.
func commands(t *testing.T, w *e2e.World) (leaves []string, help map[string]string) {
	help = make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		text := w.Succeeds(append(strings.Fields(path), "--help")...)
		help[path] = text
		var own []string
		section := ""
		_, after, _ := strings.Cut(text, "\nUsage:\n")
		for line := range strings.Lines(after) {
			if heading, ok := strings.CutSuffix(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(line, " ") {
				section = heading
			}
			if m := commandLine.FindStringSubmatch(line); m != nil && section != "Flags" && section != "Examples" {
				own = append(own, m[1])
			}
		}
		if path == "" {
			own = append(own, hiddenCommands...)
		}
		if len(own) == 0 {
			leaves = append(leaves, path)
		}
		for _, name := range own {
			walk(strings.TrimSpace(path + " " + name))
		}
	}
	walk("")
	require.Contains(t, leaves, "secret list")
	require.Contains(t, leaves, "completion zsh")
	require.Greater(t, len(leaves), 40)
	return leaves, help
}

// The command reference contains the help of all commands that are not hidden.
func TestCommandReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	_, help := commands(t, e2e.NewWorld(t))
	index := "| [`goblin`](#goblin) | Serve many MCP servers as one |\n"
	texts := ""
	for _, path := range slices.Sorted(maps.Keys(help)) {
		words := strings.Fields("goblin " + path)
		parent, name := strings.Join(words[1:max(1, len(words)-1)], " "), words[len(words)-1]
		for line := range strings.Lines(help[parent]) {
			if m := commandLine.FindStringSubmatch(line); m != nil && path != "" && m[1] == name {
				index += fmt.Sprintf("| [`goblin %s`](#%s) | %s |\n", path, strings.Join(words, "-"), m[2])
			}
		}
		if !slices.Contains(hiddenCommands, path) {
			texts += fmt.Sprintf("\n## %s\n\n```text\n%s\n```\n", strings.Join(words, " "), strings.TrimSpace(help[path]))
		}
	}
	current := "# Commands\n\nThis is the help of all commands. `go generate .` writes this file.\n\n| command | what it does |\n|---|---|\n" + index + texts
	file := filepath.Join(root, "gateway/command/README.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(current), 0o644))
	}
	require.True(t, current == read(t, file), "%s is not current: run go generate .", file)
}

func TestHelpOfEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	_, help := commands(t, e2e.NewWorld(t))
	for path, text := range help {
		_, examples, ok := strings.Cut(text, "\nExamples:\n")
		require.True(t, ok, "goblin %s --help has no example", path)
		require.Regexp(t, `^  .*goblin`, examples, path)
	}
}

// Commands in the text of documents exist, and accept the flags that follow them.
func TestCommandsOfTheDocsExist(t *testing.T) {
	t.Parallel()
	_, help := commands(t, e2e.NewWorld(t))
	span := regexp.MustCompile("`goblin\\s((?:[a-z-]+\\s?)*)([^`]{0,200})`") // may be wrapped
	checked := 0
	for _, pattern := range append([]string{"AGENTS.md", "CONTRIBUTING.md", "SECURITY.md"}, examples...) {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			for _, found := range span.FindAllStringSubmatch(read(t, file), -1) {
				checkCommand(t, help, strings.Fields("goblin "+found[1]+found[2]))
				checked++
			}
		}
	}
	require.Greater(t, checked, 100)
}

// checkCommand reports a command of Goblin that does not exist, and flags that it lacks.
func checkCommand(t *testing.T, help map[string]string, words []string) {
	t.Helper()
	if len(words) < 2 || words[0] != "goblin" {
		return
	}
	path := ""
	for _, word := range words[1:] {
		next := strings.TrimSpace(path + " " + word)
		if _, ok := help[next]; !ok {
			break
		}
		path = next
	}
	if path == "" && regexp.MustCompile(`^[a-z]`).MatchString(words[1]) {
		t.Errorf("there is no command %q", words)
	}
	for _, word := range words[1:] {
		if word == "--" || word == "|" || strings.HasPrefix(word, "#") { // other programs and comments follow
			break
		}
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "--") && !strings.Contains(help[path], flag) {
			t.Errorf("%q has no flag %s", words, flag)
		}
	}
}

// A command that accepts --config reads or writes that file.
func TestCommandsThatIgnoreTheConfigDoNotTakeIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, "EDITOR=true", "VISUAL=", "GOBLIN_REGISTRY=")
	leaves, help := commands(t, w)
	source := filepath.Join(w.Dir, "servers.json")
	require.NoError(t, os.WriteFile(source, []byte(`{"mcpServers": {"x": {"command": "true"}}}`), 0o600))
	arguments := map[string][]string{
		"list": {"tools"}, "search": {"x"}, "describe": {"x"}, "read": {"x"}, "call": {"x"}, "prompt": {"x"}, "lua": {"-"},
		"restart": {"x"}, "login": {"x"}, "logout": {"x"}, "add": {"x", "--no-check", "--", "true"}, "remove": {"x"}, "enable": {"x"},
		"disable": {"x"}, "install": {"--print", "cursor"}, "uninstall": {"cursor"}, "registry search": {"x"},
		"secret set": {"x"}, "secret get": {"x"}, "secret rm": {"x"}, "demo-server": {"clock"}, "end-children": {w.Dir},
		"init": {"--from", source}, "watch": {"x"}, "check": {"x"}, "export": {"--format", "har"},
	}
	for _, list := range []string{"tools", "prompts", "resources", "templates"} {
		arguments[list+" off"], arguments[list+" on"] = []string{"x"}, []string{"x"}
	}
	for _, path := range leaves {
		shown := strings.Contains(help[path], "--config FILE")
		file := filepath.Join(w.Dir, "its-name.yaml")
		require.NoError(t, os.WriteFile(file, []byte("servers: ["), 0o600))
		out := w.RunInput("value\n", slices.Concat(strings.Fields(path), []string{"--config", file}, arguments[path])...)
		if !shown {
			require.Equal(t, e2e.ExitUsage, out.Code, path)
			require.Contains(t, out.Stderr, "reads no config; omit --config", path)
			continue
		}
		// secret set lists the servers of the config that use the secret. open only needs its theme
		// and keys, and a terminal.
		if path == "secret set" || path == "open" {
			continue
		}
		require.Contains(t, out.Stdout+out.Stderr, "its-name.yaml", path)
	}
}
