//go:build e2e

package security

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// tricky are names of tools that a shell misreads without quotes.
var tricky = []string{
	"plain",
	"`touch hit`", "$(touch hit)", "{a,b}", "#x", "-x", "--json", "--", "it's", "'; touch hit; '", `\'; touch hit #`, `a\b`, `a"; touch hit; "b`,
	"a;touch hit", "a&touch hit", "a|touch hit", "a>hit", "*", "~", "!x", "=ls", "a b", "a=b", "$HOME", "%PATH%", "zwölf",
}

// unsafe are names of tools that no user can check in a command.
var unsafe = []string{"a\nb", "a\x1b'; touch hit; '", "a\u202eb", "a\u200bb", "a      b", strings.Repeat("long", 60)}

// inShell runs a command line in a shell, in its own folder in which "goblin" is found.
func inShell(t *testing.T, w *e2e.World, shell, line string) {
	t.Helper()
	bin, folder := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(e2e.Goblin, filepath.Join(bin, "goblin")))
	cmd := exec.Command(shell, "-c", line)
	cmd.Dir, cmd.Env = folder, append(w.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	_ = cmd.Run()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "%s ran something: %s", shell, line)
}

// A user may copy a tool's row after "goblin approve".
func TestNamesOfToolsThatAwaitApprovalRunNothingInAShell(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("calc", e2e.RugPull())
	c := w.Bridged()
	c.WaitListed("tools", "calc_add", true)
	all := slices.Concat(tricky, unsafe, []string{"a\n$(touch hit)", "`touch hit`\x1b'", "a      `touch hit`", "!'$(touch hit)'", "--config=/x", "-\n`touch hit`"})
	for _, name := range all {
		b.Add("tools", e2e.Tool(name))
	}
	b.ListChanged("tools")
	slices.Sort(all)
	e2e.Eventually(t, "the new tools", func() bool { return slices.Equal(awaiting(t, w), all) })

	rows := regexp.MustCompile(`(?m)^calc (.*) \(new, hidden\)$`).FindAllStringSubmatch(w.Succeeds("approve"), -1)
	require.Len(t, rows, len(all))
	for _, row := range rows {
		inShell(t, w, "sh", "goblin approve calc "+row[1])
		inShell(t, w, "bash", "goblin approve calc "+row[1])
	}
	left := awaiting(t, w)
	for _, name := range tricky {
		require.NotContains(t, left, name, "its row contains its name")
	}
	require.Subset(t, left, []string{"a\nb", "a\x1b'; touch hit; '", "a\u202eb", "a\u200bb", "a      b"}, "no row names another tool, or none")
}

// awaiting lists the names of the tools that await approval.
func awaiting(t *testing.T, w *e2e.World) (names []string) {
	t.Helper()
	var rows []struct{ Name string }
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("approve", "--json")), &rows))
	for _, row := range rows {
		names = append(names, row.Name)
	}
	slices.Sort(names)
	return names
}

func TestPrintedCommandsApproveExactlyTheirTool(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("calc", e2e.RugPull())
	c := w.Bridged()
	c.WaitListed("tools", "calc_add", true)
	all := slices.Concat(tricky, unsafe)
	for _, name := range all {
		b.Add("tools", e2e.Tool(name))
	}
	b.ListChanged("tools")
	slices.Sort(all)
	e2e.Eventually(t, "the new tools", func() bool { return slices.Equal(awaiting(t, w), all) })
	told := func(name string) string { return c.Fault("tools/call", e2e.Obj{"name": "calc/" + name}).Message }

	for _, name := range unsafe {
		require.True(t, strings.HasSuffix(told(name), `unapproved: new on server "calc"; see "goblin approve"`), told(name))
	}
	logged := 0
	for _, line := range strings.Split(w.Succeeds("logs"), "\n") {
		if _, command, ok := strings.Cut(line, " approve="); ok {
			inShell(t, w, "sh", command)
			inShell(t, w, "sh", strings.Trim(command, `"`))
			logged++
		}
	}
	require.Equal(t, len(all), logged)
	left := awaiting(t, w)
	require.Subset(t, left, unsafe)
	command := regexp.MustCompile(`; run "(goblin approve .*)"$`)
	for i, name := range tricky {
		if !slices.Contains(left, name) {
			continue // the command in the log approved it
		}
		found := command.FindStringSubmatch(told(name))
		require.NotNil(t, found, told(name))
		inShell(t, w, []string{"sh", "bash"}[i%2], found[1])
		left = slices.DeleteFunc(left, func(n string) bool { return n == name })
		require.Equal(t, left, awaiting(t, w), found[1])
	}
	require.Equal(t, len(unsafe), len(left))
}

func TestOddNamesMeanThemselvesInArguments(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("calc", e2e.RugPull())
	c := w.Bridged()
	c.WaitListed("tools", "calc_add", true)
	all := []string{"#x", "--all", "-x", "b", "{a,b}"}
	for _, name := range all {
		b.Add("tools", e2e.Tool(name))
	}
	b.ListChanged("tools")
	e2e.Eventually(t, "the new tools", func() bool { return slices.Equal(awaiting(t, w), all) })

	for _, args := range [][]string{{"calc", ""}, {"calc", "b", ""}, {""}, {"", "b"}, {"--", "calc", ""}} {
		out := w.Run(append([]string{"approve"}, args...)...)
		require.Equal(t, e2e.ExitUsage, out.Code, args)
		require.Contains(t, out.Stderr, "approve needs names, not an empty string")
	}
	require.Equal(t, all, awaiting(t, w))
	for _, args := range [][]string{{"calc", "#x"}, {"calc", "--", "-x"}, {"--", "calc", "--all"}, {"calc", "{a,b}"}} {
		w.Succeeds(append([]string{"approve"}, args...)...)
		all = slices.DeleteFunc(all, func(name string) bool { return name == args[len(args)-1] })
		require.Equal(t, all, awaiting(t, w), args)
	}

	for _, args := range [][]string{
		{"call", ""},
		{"call", "--", ""},
		{"read", ""},
		{"prompt", ""},
		{"describe", ""},
		{"logs", ""},
		{"doctor", ""},
		{"login", ""},
		{"logout", ""},
		{"restart", ""},
		{"enable", ""},
		{"disable", ""},
		{"remove", ""},
		{"disable", "calc", ""},
		{"tools", "off", ""},
		{"tools", "off", "calc_same", ""},
		{"tools", "on", ""},
	} {
		require.Contains(t, []int{e2e.ExitUsage, e2e.ExitNotFound}, w.Run(args...).Code, args)
	}
	require.Contains(t, c.Names("tools"), "calc_same", "nothing is disabled")
	w.Succeeds("tools", "off", "--", "calc/-x")
	require.Contains(t, w.Succeeds("tools", "list"), "disabled")
	w.Succeeds("call", "--", "calc/-x")
	w.Succeeds("describe", "--", "calc_same")
	w.Succeeds("list", "--", "tools")
	w.Succeeds("doctor", "--", "calc")
}
