package childproc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/childproc"
)

// On Windows, programs such as npx are scripts that only the shell can start.
func TestScriptsOfWindowsGetTheirArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	const head = `cmd.exe /e:on /v:off /d /c "`
	for _, test := range []struct {
		script string
		args   []string
		want   string
	}{
		{`C:\node\npx.cmd`, []string{"-y", "@scope/server-files", `C:\data`}, `"C:\node\npx.cmd" -y @scope/server-files C:\data"`},
		{`C:\Program Files\nodejs\npx.cmd`, []string{`C:\My Files`}, `"C:\Program Files\nodejs\npx.cmd" "C:\My Files""`},
		{`C:\a.bat`, []string{"", "a b", "a&calc", "x|y>z<q", "(1)", "a^b", "5,6;7=8"}, `"C:\a.bat" "" "a b" "a&calc" "x|y>z<q" "(1)" "a^b" "5,6;7=8""`},
		{`C:\a.bat`, []string{`say "hi"`, `{"k":"v & w"}`}, `"C:\a.bat" "say ""hi""" "{""k"":""v & w""}""`},
		{`C:\a.bat`, []string{`C:\dir\`, `a\"b`, `a b\\`}, `"C:\a.bat" "C:\dir\\" "a\\""b" "a b\\\\""`},
		{`C:\a.bat`, []string{"100%", "%PATH%", "!x!"}, `"C:\a.bat" "100%%cd:~,%" "%%cd:~,%PATH%%cd:~,%" "!x!""`},
	} {
		got, err := childproc.ScriptLine(test.script, test.args)
		require.NoError(t, err)
		require.Equal(t, head+test.want, got)
	}
	for _, args := range [][]string{{"a\nb"}, {"a", "b\rcalc"}, {"\x00"}} {
		_, err := childproc.ScriptLine(`C:\a.cmd`, args)
		require.ErrorContains(t, err, "line break")
	}
	for _, script := range []string{`C:\a".cmd`, `C:\%x%.cmd`, "C:\\a\n.cmd", `C:\a.cmd\`} {
		_, err := childproc.ScriptLine(script, nil)
		require.ErrorContains(t, err, "to cmd.exe")
	}
	for name, is := range map[string]bool{`C:\npx.cmd`: true, `npx.CMD`: true, "x.bat": true, "node.exe": false, "cmd": false, "a.cmd.exe": false} {
		require.Equal(t, is, childproc.IsScript(name), name)
	}
}

// No argument contains an operator of the shell, closes its quotes or names a variable.
func TestNoArgumentOfAScriptMeansAnythingToTheShell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune(`ab1 "\%&|<>()^!,;=PATH:~é`)))).Draw(t, "args")
		line, err := childproc.ScriptLine(`C:\s.cmd`, args)
		require.NoError(t, err)
		rest, ok := strings.CutPrefix(line, `cmd.exe /e:on /v:off /d /c ""C:\s.cmd"`)
		require.True(t, ok)
		rest, ok = strings.CutSuffix(rest, `"`)
		require.True(t, ok)
		rest = strings.ReplaceAll(rest, `%%cd:~,%`, "") // the shell replaces it by one character
		require.NotContains(t, rest, "%")
		within := false
		for _, c := range rest {
			switch {
			case c == '"':
				within = !within
			case !within:
				require.NotContains(t, "&|<>()^!,;=é", string(c), line)
			}
		}
		require.False(t, within, "quotes are closed")
	})
}

func TestVariablesOfWindowsAreFoundInAnyCase(t *testing.T) {
	t.Parallel()
	env := []string{"Path=C:\\a", "PATHEXT=.EXE", "odd", "PATH2=x"}
	require.Equal(t, "C:\\a", childproc.LookupEnv(env, "PATH", true))
	require.Empty(t, childproc.LookupEnv(env, "PATH", false))
	require.Equal(t, "b", childproc.LookupEnv([]string{"PATH=a", "PATH=b"}, "PATH", false), "the last one counts, as in os/exec")
}
