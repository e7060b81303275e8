package serverentry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/secrets"
	"goblin/gateway/serverentry"
	"goblin/registry/report"
)

const (
	token = "sk-abcdef1234567890abcdef"
	text  = `# mine
servers:
  other: {url: "https://h/x", headers: {Authorization: "Bearer o'ther-1234"}} # other
  web:
    command: npx # why
    args: [-y, --token=hunter2hunter2, pkg]
    env:
      API_KEY: ${WEB_KEY:-x} # the key
      PASSWORD: 'it''s' # quoted
      PORT: 8080
    tools: {deny: [x]}
`
)

// editor returns an editor of a new config, without a keyring.
func editor(t *testing.T, text string) *serverentry.Editor {
	t.Helper()
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	dir := t.TempDir()
	e := &serverentry.Editor{Path: filepath.Join(dir, "c.yaml"), Store: secrets.Open(dir)}
	require.NoError(t, os.WriteFile(e.Path, []byte(text), 0o600))
	return e
}

func read(t *testing.T, e *serverentry.Editor) string {
	t.Helper()
	got, err := os.ReadFile(e.Path)
	require.NoError(t, err)
	return string(got)
}

func values(pairs ...any) (all []report.ServerValue) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, report.ServerValue{Path: strings.Split(pairs[i].(string), "."), Value: pairs[i+1]})
	}
	return all
}

func TestAnEntryIsReadAsWrittenWithoutSecrets(t *testing.T) {
	entry, err := editor(t, text).Read("web")
	require.NoError(t, err)
	got := map[string]any{}
	for _, f := range entry.Fields {
		if f.Value != nil {
			got[f.Name()] = f.Value
		}
	}
	require.Equal(t, map[string]any{
		"command": "npx", "args": []string{"-y", "--token=[hidden]", "pkg"}, "disabled": false,
		"env.API_KEY": "${WEB_KEY:-x}", "env.PASSWORD": "[hidden]", "env.PORT": "8080",
	}, got)
	require.Equal(t, []string{"tools"}, entry.Others)

	entry, err = editor(t, text).Read("other")
	require.NoError(t, err)
	require.Equal(t, "url", entry.Fields[0].Name())
	require.Equal(t, "[hidden]", entry.Fields[1].Value)
	_, err = editor(t, text).Read("none")
	require.ErrorContains(t, err, `server "none" has no entry`)
	e := editor(t, text)
	require.NoError(t, os.Remove(e.Path))
	_, err = e.Read("web")
	require.ErrorContains(t, err, "no longer exists")
}

func TestAChangeIsShownWithoutSecretsAndSaved(t *testing.T) {
	e := editor(t, text)
	entry, err := e.Read("web")
	require.NoError(t, err)
	edit := report.ServerEdit{Entry: entry, Keyring: true, Values: values(
		"args", []string{"-y", "--token=[hidden]", "pkg2"}, "env.API_KEY", token, "env.PASSWORD", "[hidden]", "env.NEW", "a: b", "env.PORT", nil, "disabled", true, "timeout", "5s")}
	p, err := e.Preview(edit)
	require.NoError(t, err)
	diff := strings.Join(p.Diff, "\n")
	for _, secret := range []string{token, "hunter2hunter2", "it's", "it''s", "ther-1234"} {
		require.NotContains(t, diff, secret)
	}
	require.Contains(t, diff, "+      API_KEY: ${keyring:web.API_KEY} # the key\n")
	require.Contains(t, diff, "-      PORT: 8080\n")
	require.Equal(t, []string{"env.API_KEY"}, p.Secrets)
	require.False(t, p.Keyring)
	require.Contains(t, p.Place, "secrets.json, which only you can read")
	require.False(t, p.Starts, "it is disabled")
	require.Equal(t, text, read(t, e), "nothing was written")

	require.NoError(t, e.Save(edit))
	require.Equal(t, strings.NewReplacer(
		"pkg]", "pkg2]", "${WEB_KEY:-x}", "${keyring:web.API_KEY}", "PORT: 8080", "NEW: 'a: b'",
		"  web:\n", "  web:\n    disabled: true\n", "[x]}\n", "[x]}\n    timeout: 5s\n",
	).Replace(text), read(t, e), "comments, order and secrets stay")
	value, err := e.Store.Get("web.API_KEY")
	require.NoError(t, err)
	require.Equal(t, token, value)
}

func TestOnlyTheTokenOfAHeaderIsStored(t *testing.T) {
	e := editor(t, text)
	entry, err := e.Read("other")
	require.NoError(t, err)
	edit := report.ServerEdit{Entry: entry, Values: values("headers.Authorization", "Bearer "+token)}
	p, err := e.Preview(edit)
	require.NoError(t, err)
	require.NotContains(t, strings.Join(p.Diff, ""), token, "as plain text it is hidden")
	require.Contains(t, strings.Join(p.Diff, ""), "[new value, hidden]")
	cfg, err := e.Config(edit)
	require.NoError(t, err)
	s, _ := cfg.Server("other")
	require.Equal(t, "Bearer "+token, s.Headers["Authorization"], "for the test")
	edit.Keyring = true
	require.NoError(t, e.Save(edit))
	require.Contains(t, read(t, e), "Bearer ${keyring:other.Authorization}")
}

func TestSecretsInArgumentsAndURLsAreStored(t *testing.T) {
	e := editor(t, text)
	entry, err := e.Read("web")
	require.NoError(t, err)
	edit := report.ServerEdit{Entry: entry, Keyring: true, Values: values("args", []string{"-y", "--token=[hidden]", "--api-key", token, "--password=pässwörd1"})}
	p, err := e.Preview(edit)
	require.NoError(t, err)
	require.Equal(t, []string{"args"}, p.Secrets)
	require.NotContains(t, strings.Join(p.Diff, "\n"), token)
	require.NoError(t, e.Save(edit))
	require.Contains(t, read(t, e), "--token=hunter2hunter2", "it was there before")
	require.Contains(t, read(t, e), "${keyring:web.api-key}")
	require.Contains(t, read(t, e), "--password=${keyring:web.password}")
	value, err := e.Store.Get("web.password")
	require.NoError(t, err)
	require.Equal(t, "pässwörd1", value)

	entry, err = e.Read("other")
	require.NoError(t, err)
	edit = report.ServerEdit{Entry: entry, Keyring: true, Values: values("url", "https://ann:hunter3hunter@h/x?units=metric&token="+token)}
	p, err = e.Preview(edit)
	require.NoError(t, err)
	require.Equal(t, []string{"url"}, p.Secrets)
	require.NoError(t, e.Save(edit))
	require.Contains(t, read(t, e), `https://${keyring:other.arg1}@h/x?units=metric&token=${keyring:other.token}`)
}

func TestWrongValuesAndChangedFilesAreRefused(t *testing.T) {
	e := editor(t, text)
	entry, err := e.Read("web")
	require.NoError(t, err)
	for _, wrong := range [][]report.ServerValue{
		values("env.PASSWORD", "x[hidden]"), values("args", []string{"[hidden]"}), values("timeout", "soon"), values("command", nil),
	} {
		edit := report.ServerEdit{Entry: entry, Values: wrong}
		_, err := e.Preview(edit)
		require.Error(t, err)
		require.Error(t, e.Save(edit))
	}
	now := strings.Replace(text, "it''s", "another", 1)
	require.NoError(t, os.WriteFile(e.Path, []byte(now), 0o600))
	edit := report.ServerEdit{Entry: entry, Values: values("env.API_KEY", token), Keyring: true}
	_, err = e.Preview(edit)
	for _, err := range []error{err, e.Save(edit)} {
		changed, ok := errors.AsType[*report.FileChangedError](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, strings.Join(changed.Diff, "\n"), "+      PASSWORD: '[new value, hidden]'")
	}
	require.Equal(t, now, read(t, e))
	_, err = e.Store.Get("web.API_KEY")
	require.ErrorIs(t, err, secrets.ErrNotFound, "nothing was stored")

	require.NoError(t, os.WriteFile(e.Path, []byte("servers: ["), 0o600))
	_, err = e.Preview(edit)
	require.Error(t, err)
}

func TestOnlyTheChangedLinesAreShownInAnySpelling(t *testing.T) {
	for name, text := range map[string]string{
		"lines of Windows": "\ufeffservers:\r\n  web:\r\n    command: npx\r\n    env:\r\n      API_KEY: sk-abcdef1234567890abcdef\r\n  b: {url: \"https://h\", headers: {Authorization: 'Bearer sk-abcdef1234567890abcdef'}}\r\n",
		"flow style":       "servers: {web: {command: npx,\n  env: {API_KEY: sk-abcdef1234567890abcdef}}}\n",
		"anchors":          "servers:\n  a:\n    command: x\n    env: &e {API_KEY: sk-abcdef1234567890abcdef}\n  web:\n    command: npx\n    env: *e\n",
		"merged":           "servers:\n  a: &a\n    command: x\n    args: [--token=sk-abcdef1234567890abcdef]\n    env: {API_KEY: sk-abcdef1234567890abcdef}\n  web:\n    <<: *a\n    command: npx\n",
		"JSON":             "{\n  # mine: sk-abcdef1234567890abcdef\n  \"servers\": {\n    \"web\": {\n      \"command\": \"npx\",\n      \"env\": {\"API_KEY\": \"sk-abcdef1234567890abcdef\"},\n    },\n  },\n}\n",
		"escapes":          "servers:\n  web:\n    command: npx\n    env: {API_KEY: \"sk-abcdef\\x31234567890abcdef\"}\n",
		"block text":       "servers:\n  web:\n    command: npx\n    env:\n      API_KEY: >-\n        sk-abcdef1234567890abcdef\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := editor(t, text)
			entry, err := e.Read("web")
			require.NoError(t, err)
			p, err := e.Preview(report.ServerEdit{Entry: entry, Values: values("command", "uvx")})
			require.NoError(t, err)
			diff := strings.Join(p.Diff, "\n")
			require.NotContains(t, diff, "234567890abcdef")
			require.NotContains(t, diff, "\r")
			require.Equal(t, 1, strings.Count("\n"+diff, "\n-"), diff)
			require.Equal(t, 1, strings.Count("\n"+diff, "\n+"), diff)
		})
	}
	e := editor(t, "servers:\n  web: {command: npx}\n")
	entry, err := e.Read("web")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(e.Path, []byte("servers:\r\n  web: {command: npx}\r\n"), 0o600))
	_, err = e.Preview(report.ServerEdit{Entry: entry, Values: values("command", "uvx")})
	changed, ok := errors.AsType[*report.FileChangedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{"only line ends or the byte order mark differ"}, changed.Diff)
}
