package termtext

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile are words that run "touch hit" in a shell that parses them differently.
var hostile = []string{
	"", " ", "plain", "a b", "it's", "-x", "--", "#x", "{a,b}", "~", "=touch", "!!", "!x", "*", "?", "[a]", "a=b", "%PATH%", "%self", "世界", "\xff",
	"`touch hit`", "$(touch hit)", "${x:-`touch hit`}", "; touch hit; #", "'; touch hit; '", "'; touch hit #", `\'; touch hit #`, `\\'; touch hit #`,
	`"; touch hit; "`, `a\`, `\`, `\\`, `' \'; touch hit #`, "\n touch hit\n", "'\n; touch hit; '", "\x1b'; touch hit; '", "\x1b\\'; touch hit; '", "\u202e'; touch hit #",
	"\x1b\"`touch hit`", "\x1b$(touch hit)", "\x7f%s%n'; touch hit; '", "&touch hit&", "|touch hit", ">hit", "<(touch hit)", "\x1b' >hit '",
}

// shells returns the installed shells and whether each supports $'…'.
func shells(t testing.TB) map[string]bool {
	found := map[string]bool{}
	for _, name := range []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "yash", "fish", "busybox"} {
		if _, err := exec.LookPath(name); err == nil {
			out, _ := script(t, t.TempDir(), name, `printf %s $'\101'`)
			found[name] = out == "A"
		}
	}
	if len(found) == 0 {
		t.Skip("no shell installed")
	}
	return found
}

func script(t testing.TB, folder, shell, text string) (string, error) {
	t.Helper()
	args := []string{"-c", text}
	if shell == "busybox" {
		args = append([]string{"ash"}, args...)
	}
	cmd := exec.Command(shell, args...)
	cmd.Dir = folder
	out, err := cmd.Output()
	return string(out), err
}

func TestShellsRunNothingInWords(t *testing.T) {
	t.Parallel()
	for shell, knows := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			var all [][]string
			for _, s := range hostile {
				all = append(all, []string{s}, []string{s, s}, []string{"-x" + s, s})
			}
			runsNothing(t, shell, knows, all...)
		})
	}
}

func FuzzShellsRunNothingInWords(f *testing.F) {
	f.Add("plain", "'; touch hit; '")
	f.Add("\x1b\\'; touch hit; '", "`touch hit`")
	f.Add("\n touch hit\n", `\'; touch hit #`)
	known := shells(f)
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.ContainsRune(first+second, 0) {
			t.Skip("impossible in an argument")
		}
		for shell, knows := range known {
			runsNothing(t, shell, knows, []string{first, second})
		}
	})
}

// runsNothing runs a command in a shell for several lists of words. The words must be
// printed. A shell that does not know their form must not run anything.
func runsNothing(t *testing.T, shell string, knows bool, lists ...[]string) {
	t.Helper()
	var sure, portable batch
	for _, words := range lists {
		quoted := QuoteWords(words...)
		require.NotRegexp(t, `[\x00-\x1f\x7f]`, quoted)
		if knows || !strings.Contains(quoted, "$'") {
			sure.add(quoted, words)
		} else {
			_, _ = runHere(t, shell, "printf '<%s>' "+quoted)
		}
		each := make([]string, len(words))
		for i, word := range words {
			each[i] = Portable(QuoteWord(word))
		}
		if strings.Contains(strings.Join(words, ""), "\n") {
			_, _ = runHere(t, shell, "printf '<%s>' "+strings.Join(each, " "))
		} else {
			portable.add(strings.Join(each, " "), words)
		}
	}
	for _, b := range []batch{sure, portable} {
		out, err := runHere(t, shell, b.script)
		require.NoError(t, err, "%s: %s", shell, b.script)
		require.Equal(t, b.want, out, shell)
	}
}

// batch is a script that prints lists of words, one list per line, and its expected
// output.
type batch struct{ script, want string }

func (b *batch) add(quoted string, words []string) {
	b.script += "printf '<%s>' " + quoted + "; echo\n"
	b.want += "<" + strings.Join(words, "><") + ">\n"
}

// runHere runs a script in a new folder, which must stay empty.
func runHere(t *testing.T, shell, text string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	out, err := script(t, folder, shell, text)
	left, readErr := os.ReadDir(folder)
	require.NoError(t, readErr)
	require.Empty(t, left, "%s ran something in %s", shell, text)
	return out, err
}

func TestCommandsOfGoblinNameWhatTheyMean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, want string }{
		{"add", "goblin approve s add"},
		{"#x", "goblin approve s '#x'"},
		{"{a,b}", "goblin approve s '{a,b}'"},
		{"`id`", "goblin approve s '`id`'"},
		{"it's", `goblin approve s 'it'\''s'`},
		{"%self", "goblin approve s '%self'"},
		{"-x", "goblin approve -- s -x"},
		{"--json", "goblin approve -- s --json"},
		{"", "see: goblin approve"},
		{"a\nb", "see: goblin approve"},
		{"a\x1b[2J", "see: goblin approve"},
		{"a\u202eb", "see: goblin approve"},
		{"a\u200bb", "see: goblin approve"},
		{"a\u3164b", "see: goblin approve"},
		{"a\xffb", "see: goblin approve"},
		{"a     b", "see: goblin approve"},
		{strings.Repeat("x", maxQuoted+1), "see: goblin approve"},
	} {
		require.Equal(t, tt.want, Goblin("approve", "s", tt.name))
		require.Equal(t, !strings.HasPrefix(tt.want, "see"), CanQuote("s", tt.name))
	}
	require.Equal(t, "goblin login", Command("goblin login", nil))
	require.Equal(t, `"$(printf '\033\134\047')"`, Portable(QuoteWord("\x1b\\'")), "fish reads two backslashes in quotes as one")
	require.Equal(t, "goblin call a --args '{}' --config 'a b'", Command("goblin call", []string{"a"}, "--args", "{}", "--config", "a b"))
	require.Equal(t, "goblin call --args '{}' -- -a", Command("goblin call", []string{"-a"}, "--args", "{}"))
}

func TestWordsForWindows(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"calc": "calc", `C:\a\b`: `C:\a\b`, `C:\a b`: `"C:\a b"`, `C:\a b\`: `'C:\a b\'`, "it's": "'it''s'", "a,b": "'a,b'", "": "''",
		"$(id)": "'$(id)'", "a\u2019; id": "'a\u2019\u2019; id'", "a`b": "'a`b'",
	} {
		require.Equal(t, want, quoteWindows(word))
	}
	for _, name := range []string{"%PATH%", "a&b", "a|b", "a\"b", "a'b", "a`b", "$x", "@x", "#x", "{a,b}", "a;b", "a\nb"} {
		require.False(t, isPlainWindows(name), name)
	}
}
