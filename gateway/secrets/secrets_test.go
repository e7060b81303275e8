package secrets_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zalando/go-keyring"

	"goblin/gateway/e2e"
	"goblin/gateway/secrets"
)

// withKeyring simulates a keyring. The other tests have none.
func withKeyring(t *testing.T, begin func()) {
	t.Setenv("GOBLIN_NO_KEYRING", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	begin()
}

func TestSecretsAreInTheKeyringOrInAPrivateFile(t *testing.T) {
	for name, tt := range map[string]struct {
		keyring func()
		place   string
	}{
		"keyring": {keyring.MockInit, "the system's keyring"},
		"locked":  {func() { keyring.MockInitWithError(errors.New("locked\x1b[2J")) }, "secrets.json, which only you can read (the keyring refused it: locked [2J)"},
		"none":    {nil, "secrets.json, which only you can read (no keyring available)"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.keyring == nil {
				t.Setenv("GOBLIN_NO_KEYRING", "1")
			} else {
				withKeyring(t, tt.keyring)
			}
			state := filepath.Join(t.TempDir(), "state")
			s := secrets.Open(state)
			_, err := s.Get("a")
			require.ErrorIs(t, err, secrets.ErrNotFound)
			require.ErrorIs(t, s.Remove("a"), secrets.ErrNotFound)

			for _, value := range []string{"the first value", "the \"second\"\nvalue, ü"} {
				place, err := s.Set("team/key", value)
				require.NoError(t, err)
				require.Contains(t, place, tt.place)
				got, err := secrets.Open(state).Get("team/key")
				require.NoError(t, err)
				require.Equal(t, value, got)
			}
			_, err = s.Set("a", "b")
			require.NoError(t, err)
			names, err := s.List()
			require.NoError(t, err)
			require.Equal(t, []string{"a", "team/key"}, names)

			file := filepath.Join(state, "secrets.json")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, name != "keyring", strings.Contains(string(text), "second"))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

			require.NoError(t, s.Remove("team/key"))
			_, err = s.Get("team/key")
			require.ErrorIs(t, err, secrets.ErrNotFound)
			names, err = s.List()
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, names)
		})
	}
}

func TestASecretMovesFromTheFileToTheKeyring(t *testing.T) {
	state := t.TempDir()
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	_, err := secrets.Open(state).Set("a", "in the file")
	require.NoError(t, err)
	withKeyring(t, keyring.MockInit)
	_, err = secrets.Open(state).Set("a", "in the keyring")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(state, "secrets.json"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "in the file")

	t.Setenv("GOBLIN_NO_KEYRING", "1")
	_, err = secrets.Open(state).Get("a")
	require.ErrorContains(t, err, "it is in the keyring, which is not available here")
	require.Error(t, secrets.Open(state).Remove("a"))
	_, err = secrets.Open(state).Set("a", "in the file again")
	require.NoError(t, err)
	value, err := secrets.Open(state).Get("a")
	require.NoError(t, err)
	require.Equal(t, "in the file again", value)
	value, err = keyring.Get("goblin secrets", "a")
	require.NoError(t, err)
	require.Equal(t, "in the keyring", value, "the skipped keyring is unchanged")
}

func TestAKeyringThatDoesNotForgetKeepsItsSecretListed(t *testing.T) {
	withKeyring(t, keyring.MockInit)
	s := secrets.Open(t.TempDir())
	_, err := s.Set("a", "b")
	require.NoError(t, err)
	keyring.MockInitWithError(errors.New("locked \x1b\u009b[2J" + strings.Repeat("x", 300)))
	cut := "locked [2J" + strings.Repeat("x", 190) + "…"
	require.EqualError(t, s.Remove("a"), "the keyring did not delete it: "+cut)
	_, err = s.Get("a")
	require.EqualError(t, err, "the keyring did not return it: "+cut)
	names, err := s.List()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}

func TestNoSecretMakesTheFileTooLargeToBeRead(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	state := t.TempDir()
	full := []byte(`{"a":{"value":"` + strings.Repeat("v", 4<<20-1000) + `"}}`)
	require.NoError(t, os.WriteFile(filepath.Join(state, "secrets.json"), full, 0o600))
	_, err := secrets.Open(state).Set("b", strings.Repeat("v", 1000))
	require.ErrorContains(t, err, "would become too large")
	names, err := secrets.Open(state).List()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}

func TestWhatIsNoSecretIsRefused(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	s := secrets.Open(t.TempDir())
	for name, value := range map[string]string{
		"": "x", "a b": "x", "../a": "x", "-a": "x", strings.Repeat("a", 129): "x",
		"empty": "", "long": strings.Repeat("v", secrets.MaxValue+1), "bytes": "\xff\xfe", "nul": "a\x00b",
	} {
		_, err := s.Set(name, value)
		require.Error(t, err, name)
		if len(value) > 1 {
			require.NotContains(t, err.Error(), value)
		}
	}
	names, err := s.List()
	require.NoError(t, err)
	require.Empty(t, names)
	_, err = s.Set(strings.Repeat("a", 128), strings.Repeat("v", secrets.MaxValue))
	require.NoError(t, err, "the maximum length")
	_, err = secrets.Open("").Set("a", "b")
	require.ErrorContains(t, err, "set HOME")
}

func TestWithoutASessionThereIsNoKeyring(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("always installed")
	}
	withKeyring(t, keyring.MockInit)
	require.True(t, secrets.Keyring("any").IsAvailable())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	require.False(t, secrets.Keyring("any").IsAvailable(), "a request would start one")
}

func TestTheKeyringIsNotAskedForANameThatNoSecretHas(t *testing.T) {
	withKeyring(t, keyring.MockInit)
	require.NoError(t, keyring.Set("goblin secrets", "of/others", "by other means"))
	require.NoError(t, keyring.Set("goblin secrets", "-a b", "no secret"))
	s := secrets.Open(t.TempDir())
	value, err := s.Get("of/others")
	require.NoError(t, err)
	require.Equal(t, "by other means", value)
	_, err = s.Get("-a b")
	require.ErrorIs(t, err, secrets.ErrNotFound)
}

func TestAFileThatGoblinDidNotWriteIsLeftAlone(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	for _, text := range []string{"", "null", "[]", "{", `{"a": 1}`, strings.Repeat(" ", 5<<20)} {
		state := t.TempDir()
		file := filepath.Join(state, "secrets.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		s := secrets.Open(state)
		_, err := s.Set("a", "b")
		require.ErrorContains(t, err, file+" cannot be read: ")
		require.ErrorContains(t, err, "move it away")
		_, err = s.Get("a")
		require.Error(t, err)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(after))
	}
}

func TestManyProcessesSetSecretsAtOnce(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	state := t.TempDir()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			_, err := secrets.Open(state).Set("k"+strconv.Itoa(i), "v")
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	names, err := secrets.Open(state).List()
	require.NoError(t, err)
	require.Len(t, names, 16)
}

func TestReferencesGiveValues(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if mode&0o100 != 0 {
			e2e.WriteProgram(t, path, text)
			return path
		}
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	s := secrets.Open(dir)
	_, err := s.Set("k", "of k")
	require.NoError(t, err)
	for _, tt := range []struct {
		kind        string
		words       []string
		value, fail string
	}{
		{"keyring", []string{"k"}, "of k", ""},
		{"keyring", []string{"l"}, "", "is not set; run: goblin secret set l"},
		{"file", []string{write("a", "of a\r\n", 0o600)}, "of a", ""},
		{"file", []string{write("lines", "one\ntwo\n\n", 0o600)}, "one\ntwo\n", ""},
		{"file", []string{filepath.Join(dir, "none")}, "", "cannot be read: no such file or directory; check"},
		{"file", []string{dir}, "", "is not a file"},
		{"file", []string{"/dev/zero"}, "", "is not a file"},
		{"file", []string{write("empty", "\n", 0o600)}, "", "is empty"},
		{"file", []string{write("nul", "a\x00b", 0o600)}, "", "NUL"},
		{"file", []string{write("longest", strings.Repeat("v", secrets.MaxValue), 0o600)}, strings.Repeat("v", secrets.MaxValue), ""},
		{"file", []string{write("long", strings.Repeat("v", secrets.MaxValue+1), 0o600)}, "", "longer than 64 KiB"},
		{"cmd", []string{"printf", "%s\n", "a b; $HOME"}, "a b; $HOME", ""},
		{"cmd", []string{"cat", "a"}, "of a", ""},
		{"cmd", []string{"no-such-program"}, "", "not found in PATH; install it"},
		{"cmd", []string{write("say", "#!/bin/sh\necho the value\necho \"signed out\x1b[2J\" >&2\nexit 3\n", 0o700)}, "", "fails (exit status 3): signed out [2J; run it"},
		{"cmd", []string{write("leak", "#!/bin/sh\necho the value\necho not: the value >&2\nexit 3\n", 0o700)}, "", "no error message"},
		{"cmd", []string{write("mute", "#!/bin/sh\necho signed out >&2\nexit 3\n", 0o700)}, "", "fails (exit status 3): signed out; run it"},
		{"cmd", []string{"true"}, "", "is empty"},
		{"cmd", []string{"yes"}, "", "prints more than 64 KiB"},
		{"cmd", []string{dir}, "", "run it in a terminal"},
	} {
		value, err := s.Resolve(t.Context(), tt.kind, tt.words, dir)
		require.Equal(t, tt.value, value, tt.words)
		if tt.fail == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tt.fail)
		require.NotContains(t, err.Error(), "the value")
		require.NotContains(t, err.Error(), "\x1b")
	}
}

func TestACommandThatDoesNotEndIsEnded(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := secrets.Open("").Resolve(ctx, "cmd", []string{"sleep", "1000"}, "")
	require.ErrorContains(t, err, "run it in a terminal to see what it waits for")
}
