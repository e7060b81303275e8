package state_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/state"
)

func tool(profile, name string) state.ToggleEntry {
	return state.ToggleEntry{Profile: profile, Server: "files", Kind: "tool", Name: name}
}

func offNames(s *state.ToggleStore) (all []string) {
	for _, t := range s.Disabled() {
		all = append(all, t.Profile+":"+t.Name)
	}
	return all
}

func TestWhatIsTurnedOffStaysOffUntilItIsTurnedOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "off.json")
	one, err := state.OpenToggles(path)
	require.NoError(t, err)
	since := time.Now().UTC().Truncate(time.Second)
	write := tool("", "write")
	write.Since = since
	require.NoError(t, one.Set(false, write, tool("coding", "move"), tool("", "move")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	other, err := state.OpenToggles(path)
	require.NoError(t, err)
	require.Equal(t, []string{":move", ":write", "coding:move"}, offNames(other))
	require.Equal(t, since, other.Disabled()[1].Since)

	again := write
	again.Since = since.Add(time.Hour)
	require.NoError(t, other.Set(false, again), "a second time changes nothing")
	require.Equal(t, since, other.Disabled()[1].Since)
	require.NoError(t, other.Set(true, tool("", "move"), tool("", "never was off")))
	require.NoError(t, one.Set(false, tool("", "read")), "the other's entries are kept")
	require.Equal(t, []string{":read", ":write", "coding:move"}, offNames(one))
	require.NoError(t, other.Refresh())
	require.Equal(t, offNames(one), offNames(other))
}

func TestWithoutAFileSwitchesAreThoseOfTheProcess(t *testing.T) {
	t.Parallel()
	s, err := state.OpenToggles("")
	require.NoError(t, err)
	require.NoError(t, s.Set(false, tool("", "x")))
	require.Equal(t, []string{":x"}, offNames(s))
}

func TestAFileThatCannotBeReadIsToldOfAndKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"{\n\"version\": 2, \"off\": []}", "off.json:2: read disabled entries: version 2, expected 1"},
		{"", "off.json:1: read disabled entries: unexpected end"},
		{strings.Repeat("\x00", 200), "off.json:1: read disabled entries: invalid character"},
		{"off: []", "off.json:1: read disabled entries: invalid character"},
		{"{\"off\": []}", "off.json: read disabled entries: version missing"},
		{"{\"version\": 1}", `off.json: read disabled entries: list "off" missing`},
		{"{\"version\": 1,\n \"off\": [{\"server\":\"s\",\"name\":\"x\"}]}", "off.json:2: read disabled entries: kind missing"},
		{"{\"version\": 1,\n \"off\": [{\"server\":\"s\",\"kind\":\"tool\",\"name\":\"3\"},\n  3]}", "off.json:3: read disabled entries: json: cannot unmarshal"},
		{"{\"version\": 1,\n \"off\": [{\"server\":\"s\",\"kind\":\"tool\"}]}", "off.json:2: read disabled entries: server or name missing"},
		{"{\"version\": 1,\n\n", "off.json:3: read disabled entries: unexpected end"},
		{"{\"version\": 1,\n \"off\": 3}", "off.json:2: read disabled entries: json: cannot unmarshal"},
		{"{\"version\": 1, \"off\": [{\"server\":\"s\",\"kind\":\"tool\",\"name\":\"" + strings.Repeat("x", 9000) + "\"}]}", "longer than"},
	} {
		path := filepath.Join(t.TempDir(), "off.json")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		s, err := state.OpenToggles(path)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "remove the file")
		require.Empty(t, s.Disabled())
		require.ErrorContains(t, s.Set(false, tool("", "x")), c.want)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.text, string(text), "kept")
	}
}

func TestThingsThatCannotBeOffAreRefused(t *testing.T) {
	t.Parallel()
	s, err := state.OpenToggles("")
	require.NoError(t, err)
	require.ErrorContains(t, s.Set(false, state.ToggleEntry{Server: "s", Kind: "skill", Name: "x"}), "known: tool, prompt, resource, template")
	require.ErrorContains(t, s.Set(false, tool("", "")), "server or name missing")
	require.ErrorContains(t, s.Set(false, state.ToggleEntry{Kind: "tool", Name: "x"}), "server or name missing")
	require.ErrorContains(t, s.Set(false, tool("coding", strings.Repeat("x", 8<<10))), "longer than 8192 bytes")
	require.Empty(t, s.Disabled())
}

func TestThingsOfOneNameAreOffEachForItself(t *testing.T) {
	t.Parallel()
	s, err := state.OpenToggles("")
	require.NoError(t, err)
	prompt := state.ToggleEntry{Server: "files", Kind: "prompt", Name: "x"}
	other := state.ToggleEntry{Server: "docs", Kind: "tool", Name: "x"}
	require.NoError(t, s.Set(false, tool("", "x"), tool("coding", "x"), prompt, other))
	require.Equal(t, []state.ToggleEntry{other, tool("", "x"), prompt, tool("coding", "x")}, s.Disabled())
	require.NoError(t, s.Set(true, tool("", "x")))
	require.Equal(t, []state.ToggleEntry{other, prompt, tool("coding", "x")}, s.Disabled())
}

func TestNoMoreThingsAreOffThanAFileMayHave(t *testing.T) {
	t.Parallel()
	s, err := state.OpenToggles("")
	require.NoError(t, err)
	var all []state.ToggleEntry
	var lines []string
	for i := range state.MaxToggles + 1 {
		all = append(all, tool("", fmt.Sprintf("t%06d", i)))
		lines = append(lines, `{"server":"files","kind":"tool","name":"`+all[i].Name+`"}`)
	}
	require.NoError(t, s.Set(false, all[:state.MaxToggles]...))
	require.ErrorContains(t, s.Set(false, all[state.MaxToggles]), "at most 10000 entries can be disabled")
	require.Len(t, s.Disabled(), state.MaxToggles)

	text := func(n int) []byte { return []byte(`{"version":1,"off":[` + strings.Join(lines[:n], ",") + `]}`) }
	off, _, err := state.ParseToggles(text(state.MaxToggles))
	require.NoError(t, err)
	require.Equal(t, s.Disabled(), off)
	_, _, err = state.ParseToggles(text(state.MaxToggles + 1))
	require.EqualError(t, err, "10001 disabled entries exceed the limit of 10000")
}

func TestWhatAFileTurnsOffTwiceIsOffOnceAndInOrder(t *testing.T) {
	t.Parallel()
	off, _, err := state.ParseToggles([]byte(`{"version":1,"off":[{"server":"files","kind":"tool","name":"b"},{"server":"files","kind":"tool","name":"a"},{"server":"files","kind":"tool","name":"b","since":"2026-01-02T03:04:05Z"}]}`))
	require.NoError(t, err)
	require.Equal(t, []state.ToggleEntry{tool("", "a"), tool("", "b")}, off)
}

// FuzzOffFile checks that a read file can be written and read again, and that a mistake
// has an existing line.
func FuzzOffFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"off":[{"server":"s","kind":"tool","name":"x"},{"server":"s","kind":"tool","name":"x","profile":"p"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("{\n\"off\":[{}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		off, line, err := state.ParseToggles(text)
		if err != nil {
			require.LessOrEqual(t, line, 1+bytes.Count(text, []byte("\n")))
			return
		}
		path := filepath.Join(t.TempDir(), "off.json")
		s, err := state.OpenToggles(path)
		require.NoError(t, err)
		require.NoError(t, s.Set(false, off...))
		again, err := state.OpenToggles(path)
		require.NoError(t, err)
		require.Len(t, again.Disabled(), len(off))
	})
}
