package state_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/state"
)

func open(t *testing.T, path string) *state.PinStore {
	t.Helper()
	s, err := state.OpenPins(path)
	require.NoError(t, err)
	return s
}

// tools returns the tools of definitions with names.
func tools(definitions ...string) []state.PinnedTool {
	var all []state.PinnedTool
	for _, d := range definitions {
		var named struct{ Name string }
		if json.Unmarshal([]byte(d), &named) == nil {
			all = append(all, state.PinnedTool{Name: named.Name, Definition: []byte(d)})
		}
	}
	return all
}

// check returns the changes as "new NAME" and "changed NAME".
func check(t *testing.T, s *state.PinStore, server string, definitions ...string) []string {
	t.Helper()
	v, err := s.Check(server, tools(definitions...), true)
	require.NoError(t, err)
	found := []string{}
	for _, c := range v.Changes {
		what := "changed "
		if c.New {
			what = "new "
		}
		found = append(found, what+c.Name)
	}
	return found
}

func changed(t *testing.T, s *state.PinStore, server string) []state.DefinitionChange {
	t.Helper()
	changes, err := s.Changes(server)
	require.NoError(t, err)
	return changes
}

func TestWhatCountsAsChanged(t *testing.T) {
	t.Parallel()
	const first = `{"name":"a","title":"A","description":"Adds","inputSchema":{"type":"object","properties":{"x":{"type":"number","maximum":1e400}}},"annotations":{"readOnlyHint":true},"icons":[],"_meta":{"n":1}}`
	for name, tt := range map[string]struct{ now, want string }{
		"the same":                          {first, ""},
		"order and blanks":                  {`{ "inputSchema": {"properties":{"x":{"maximum":1e400,"type":"number"}},"type":"object"}, "annotations":{"readOnlyHint":true}, "description":"Adds","title":"A","name":"a"}`, ""},
		"icons and _meta":                   {strings.Replace(first, `"icons":[],"_meta":{"n":1}`, `"icons":[{"src":"x"}]`, 1), ""},
		"description":                       {strings.Replace(first, "Adds", "Adds. BCC me", 1), "changed a"},
		"title":                             {strings.Replace(first, `"A"`, `"B"`, 1), "changed a"},
		"schema":                            {strings.Replace(first, "1e400", "1e401", 1), "changed a"},
		"annotations":                       {strings.Replace(first, "true", "false", 1), "changed a"},
		"a member that no revision has":     {strings.Replace(first, `"icons"`, `"invocation":"auto","icons"`, 1), "changed a"},
		"a member's name in another case":   {strings.Replace(first, `"icons"`, `"Description":"BCC me","icons"`, 1), "changed a"},
		"a member twice, the first as ever": {strings.Replace(first, `"icons"`, `"description":"BCC me","icons"`, 1), "changed a"},
		"a member twice, the last as ever":  {strings.Replace(first, `"name":"a"`, `"description":"BCC me","name":"a"`, 1), "changed a"},
		"a key of the schema twice":         {strings.Replace(first, `{"x":`, `{"x":{"enum":["BCC me"]},"x":`, 1), "changed a"},
		"escapes":                           {strings.Replace(first, "Adds", `\u0041dds`, 1), ""},
		"another name":                      {strings.Replace(first, `"name":"a"`, `"name":"b"`, 1), "new b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, filepath.Join(t.TempDir(), "pins.json"))
			require.Empty(t, check(t, s, "srv", first), "the first definition is pinned")
			require.Equal(t, tt.want, strings.Join(check(t, s, "srv", tt.now), ","))
		})
	}
}

func TestPinsOutliveTheProcessAndOtherServersChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "pins.json")
	one, two := open(t, path), open(t, path)
	require.Empty(t, check(t, one, "a", `{"name":"x"}`))
	require.Empty(t, check(t, two, "b", `{"name":"y"}`))
	require.Empty(t, check(t, one, "c"), "a server without tools is not known yet")
	later := open(t, path)
	require.Equal(t, []string{"new z"}, check(t, later, "a", `{"name":"x"}`, `{"name":"z"}`))
	require.Equal(t, []string{"changed y"}, check(t, later, "b", `{"name":"y","description":"d"}`))
	require.Empty(t, check(t, later, "c", `{"name":"late"}`))
	require.Equal(t, []string{"new z"}, check(t, later, "a", `{"name":"z"}`), "a removed tool stays pinned:")
	require.Equal(t, []string{"changed x"}, check(t, later, "a", `{"name":"x","title":"X"}`))

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 3, "no temporary file is left beside the file, its last good copy and its lock")
	info, err = os.Stat(path + ".lock")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestApprovalTakesWhatIsOffered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	check(t, s, "srv", `{"name":"a"}`, `{"name":"b"}`)
	now := []string{`{"name":"a","title":"A"}`, `{"name":"b","title":"B"}`, `{"name":"c"}`}
	require.Equal(t, []string{"changed a", "changed b", "new c"}, check(t, s, "srv", now...))

	unknown, err := s.Approve("srv", nil, "a", "nope")
	require.NoError(t, err)
	require.Equal(t, []string{"nope"}, unknown)
	require.Len(t, changed(t, s, "srv"), 3, "all or none")

	shown := changed(t, s, "srv")
	_, err = s.Approve("srv", map[string]string{"a": shown[1].Hash}, "a", "b")
	require.EqualError(t, err, `tool "a" of server "srv" changed again; review it again`)
	require.Len(t, changed(t, s, "srv"), 3)
	unknown, err = s.Approve("srv", map[string]string{"a": shown[0].Hash, "b": "another one"}, "a")
	require.NoError(t, err)
	require.Empty(t, unknown)
	changes := changed(t, s, "srv")
	require.Len(t, changes, 2)
	require.JSONEq(t, `{"name":"b"}`, string(changes[0].Approved))
	require.JSONEq(t, now[1], string(changes[0].Offered))
	require.Equal(t, []string{"changed a", "changed b", "new c"}, check(t, s, "srv", `{"name":"a"}`, now[1], now[2]), "returning to an earlier approved definition is a change, too")

	_, err = s.Approve("srv", nil)
	require.NoError(t, err)
	require.Empty(t, check(t, open(t, path), "srv", `{"name":"a"}`, now[1], now[2]))
}

func TestOddDefinitionsCostNothing(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pins.json"))
	odd := []string{`{"name":"a","inputSchema":{"x":"\ud800"}}`, `{"name":"b","inputSchema":[]}`}
	require.Empty(t, check(t, s, "srv", odd...))
	require.Empty(t, check(t, s, "srv", odd...))
	large := `{"name":"a","description":"` + strings.Repeat("x", 40<<10) + `"}`
	v, err := s.Check("srv", tools(large), true)
	require.NoError(t, err)
	require.Len(t, v.Changes, 1)
	require.Nil(t, v.Changes[0].Offered, "too large to keep, but a change is noticed")
}

func TestABrokenFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "{", "another version": `{"version":2}`, "empty": "", "zeros": strings.Repeat("\x00", 200),
		"no version": `{"servers": {}}`, "no servers": `{"version": 1}`, "a bad entry": `{"version": 1, "servers": {"a": 3}}`,
	} {
		path := filepath.Join(t.TempDir(), "pins.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := state.OpenPins(path)
		require.ErrorContains(t, err, path, name)
		require.ErrorContains(t, err, "remove the file to pin all tools again")
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(kept))
	}
}

func TestServersAreCheckedSideBySide(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name, _ := json.Marshal(map[string]any{"name": i})
			_, err := s.Check(string(rune('a'+i)), tools(`{"name":"x","title":`+string(name)+`}`), false)
			require.NoError(t, err)
		})
	}
	all.Wait()
	later := open(t, path)
	for i := range 20 {
		require.Equal(t, []string{"changed x"}, check(t, later, string(rune('a'+i)), `{"name":"x"}`))
	}
}

func FuzzCheckNeverPanicsAndKnowsWhatItSaw(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object"}}`))
	f.Add([]byte(`{"name":"a","inputSchema":{"\u0000":1e999}}`))
	f.Fuzz(func(t *testing.T, item []byte) {
		s := open(t, filepath.Join(t.TempDir(), "pins.json"))
		tool := []state.PinnedTool{{Name: "a", Definition: item}}
		_, err := s.Check("srv", tool, false)
		require.NoError(t, err)
		v, err := s.Check("srv", tool, false)
		require.NoError(t, err)
		require.Empty(t, v.Changes)
		require.Equal(t, []bool{true}, v.Approved)
	})
}

func TestProcessesSeeWhatOthersApprove(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	one, two := open(t, path), open(t, path)
	require.Empty(t, check(t, one, "srv", `{"name":"a"}`))
	require.Equal(t, []string{"changed a"}, check(t, two, "srv", `{"name":"a","title":"A"}`), "another process's earlier pin counts")
	require.Equal(t, []string{"changed a", "new b"}, check(t, one, "srv", `{"name":"a","title":"A"}`, `{"name":"b"}`))
	_, err := two.Approve("srv", nil, "a")
	require.NoError(t, err)
	changes := changed(t, one, "srv")
	require.Len(t, changes, 1)
	require.Equal(t, "b", changes[0].Name)
	_, err = one.Approve("srv", nil, "b")
	require.NoError(t, err)
	require.Empty(t, check(t, open(t, path), "srv", `{"name":"a","title":"A"}`, `{"name":"b"}`), "neither reverts the other's change")
}

// A server may change between the display of its tools and their approval.
func TestWhatWasNotSeenIsNotApproved(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pins.json"))
	require.Empty(t, check(t, s, "srv", `{"name":"a"}`, `{"name":"b"}`))
	changes := []string{"changed a", "new c"}
	require.Equal(t, changes, check(t, s, "srv", `{"name":"a","title":"A"}`, `{"name":"b"}`, `{"name":"c"}`))
	for _, name := range []string{"a", "c"} {
		_, err := s.Approve("srv", map[string]string{}, name)
		var changed *state.ChangedError
		require.ErrorAs(t, err, &changed)
		require.Equal(t, name, changed.Tool)
	}
	_, err := s.Approve("srv", map[string]string{}, "b")
	require.NoError(t, err, "equal to the approved one")
	require.Len(t, changed(t, s, "srv"), 2)
}

func TestApprovedDefinitionsKeepTheirCharacters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	require.Empty(t, check(t, open(t, path), "srv", `{"description":"a < b & c","name":"x"}`))
	s := open(t, path)
	require.Equal(t, []string{"changed x"}, check(t, s, "srv", `{"description":"a < b & c","name":"x","title":"X"}`))
	require.Equal(t, `{"description":"a < b & c","name":"x"}`, string(changed(t, s, "srv")[0].Approved), "users see only the difference")
}

func TestManyProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			s, err := state.OpenPins(path)
			if err == nil {
				_, err = s.Check(string(rune('a'+i)), tools(`{"name":"x"}`), false)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	later := open(t, path)
	for i := range 20 {
		require.Equal(t, []string{"changed x"}, check(t, later, string(rune('a'+i)), `{"name":"x","title":"X"}`))
	}
}

func TestAServerThatIsGoneAwaitsNothing(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pins.json"))
	require.Empty(t, check(t, s, "srv", `{"name":"a"}`))
	require.Equal(t, []string{"new b"}, check(t, s, "srv", `{"name":"b"}`))
	require.Empty(t, check(t, s, state.SkillsName("srv"), `{"name":"s"}`))
	require.Equal(t, []string{"changed s"}, check(t, s, state.SkillsName("srv"), `{"name":"s","title":"S"}`))
	s.Forget("srv")
	require.Empty(t, changed(t, s, state.SkillsName("srv")))
	require.Empty(t, changed(t, s, "srv"))
	require.Equal(t, []string{"new b"}, check(t, s, "srv", `{"name":"b"}`), "the approved one is stored")
}

func TestWhatIsPinnedOutlivesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	require.Empty(t, check(t, s, "a", `{"name":"x"}`))
	require.NoError(t, os.Remove(path))
	require.Empty(t, check(t, s, "b", `{"name":"y"}`))
	require.Equal(t, []string{"changed x"}, check(t, open(t, path), "a", `{"name":"x","title":"X"}`))
}

func TestWhatCouldNotBeWrittenIsNotApprovedButProvisionally(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	lock := path + ".lock"
	require.NoError(t, os.Mkdir(lock, 0o700)) // cannot be locked
	v, err := s.Check("a", tools(`{"name":"x"}`), false)
	require.ErrorContains(t, err, "save pinned tools")
	require.Equal(t, []bool{false}, v.Approved)
	require.Len(t, v.Changes, 1)
	_, err = s.Approve("a", nil, "x")
	require.ErrorContains(t, err, "save pinned tools")
	require.Len(t, changed(t, s, "a"), 1)
	v, err = s.Check("a", tools(`{"name":"x"}`), true)
	require.ErrorContains(t, err, "save pinned tools")
	require.Equal(t, []bool{true}, v.Approved)
	other := filepath.Join(t.TempDir(), "other.json")
	require.Empty(t, check(t, open(t, other), "b", `{"name":"y"}`))
	require.NoError(t, os.Rename(other, path))
	require.Equal(t, []string{"changed x"}, check(t, s, "a", `{"name":"x","title":"X"}`))
	require.Equal(t, []string{"changed y"}, check(t, s, "b", `{"name":"y","title":"Y"}`), "other writers' pins count, too")
	require.NoError(t, os.Remove(lock))
	require.Empty(t, check(t, s, "c", `{"name":"z"}`))
	require.Equal(t, []string{"changed x"}, check(t, open(t, path), "a", `{"name":"x","title":"X"}`), "written with the next one")

	later := open(t, path)
	require.Equal(t, []string{"changed x"}, check(t, later, "a", `{"name":"x","title":"X"}`))
	_, err = later.Approve("a", nil)
	require.NoError(t, err)
	require.Empty(t, check(t, s, "a", `{"name":"x","title":"X"}`), "from then on the file counts")
}

func TestAnApprovalThatCouldNotBeWrittenIsNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	require.Empty(t, check(t, s, "srv", `{"name":"x"}`))
	now := tools(`{"name":"x","title":"X"}`)
	v, err := s.Check("srv", now, false)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, v.Approved)
	require.NoError(t, os.Remove(path+".lock"))
	require.NoError(t, os.Mkdir(path+".lock", 0o700)) // cannot be locked
	_, err = s.Approve("srv", nil, "x")
	require.ErrorContains(t, err, "save pinned tools")
	v, err = s.Check("srv", now, false)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, v.Approved)
	require.Len(t, v.Changes, 1)
}

func TestToolsBeyondTheBoundAreNeverApproved(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pins.json"))
	var all []string
	for i := range state.MaxTools {
		all = append(all, `{"name":"t`+strconv.Itoa(i)+`"}`)
	}
	require.Empty(t, check(t, s, "srv", all...))
	all = append(all, `{"name":"late"}`)
	require.Empty(t, check(t, s, "srv", all...))
	v, err := s.Check("srv", tools(all...), true)
	require.NoError(t, err)
	require.Equal(t, 1, v.Unwatched)
	require.False(t, v.Approved[state.MaxTools])
	require.NotContains(t, v.Approved[:state.MaxTools], false)
	v, err = s.Check("srv", tools(all[1:]...), true)
	require.NoError(t, err)
	require.Zero(t, v.Unwatched)
}

func TestNoServerMakesTheFileTooLarge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pins.json")
	s := open(t, path)
	large, long := strings.Repeat("x", 30<<10), strings.Repeat("n", 60<<10)
	var definitions, names []string
	for i := range 200 { // 6 MB, 12 MB with the names
		definitions = append(definitions, `{"name":"t`+strconv.Itoa(i)+`","description":"`+large+`"}`)
	}
	for i := range 100 {
		names = append(names, `{"name":"`+long+strconv.Itoa(i)+`"}`)
	}
	require.Empty(t, check(t, s, "definitions", definitions...))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(5<<20))
	v, err := s.Check("names", tools(names...), false)
	require.NoError(t, err)
	require.Equal(t, 32, v.Unwatched, "more than 4 MiB of names")
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(10<<20))
	definitions[199] = `{"name":"t199","description":"other"}`
	require.Equal(t, []string{"changed t199"}, check(t, open(t, path), "definitions", definitions...))
}

func TestADeepDefinitionIsCompared(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pins.json"))
	deep := func(core string) string {
		return `{"name":"a","inputSchema":` + strings.Repeat(`{"a":`, 9000) + core + strings.Repeat("}", 9000) + "}"
	}
	require.Empty(t, check(t, s, "srv", deep(`{"x":1,"y":2}`)))
	require.Empty(t, check(t, s, "srv", deep(`{"y":2,"x":1}`)))
	require.Equal(t, []string{"changed a"}, check(t, s, "srv", deep(`{"x":1,"y":3}`)))

	large := func(core string) string {
		return `{"name":"a","inputSchema":` + core + `,"description":"` + strings.Repeat("x", 1<<20) + `"}`
	}
	require.Empty(t, check(t, s, "large", large(`{"x":1,"y":2}`)))
	require.Equal(t, []string{"changed a"}, check(t, s, "large", large(`{"y":2,"x":1}`)), "large definitions are compared verbatim")
}

// FuzzFile checks that a file is read completely or refused by name. A read file can be
// written again.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"servers":{"s":{"t":{"sha256":"00","definition":{"name":"t"}}}}}`))
	f.Add([]byte(`{"version":1,"servers":{"s":null}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "pins.json")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		s, err := state.OpenPins(path)
		if err != nil {
			require.ErrorContains(t, err, path)
			return
		}
		_, err = s.Check("s", tools(`{"name":"t"}`), false)
		require.NoError(t, err)
		_, err = s.Approve("s", nil)
		require.NoError(t, err)
		changes, err := s.Changes("s")
		require.NoError(t, err)
		require.Empty(t, changes)
		_, err = state.OpenPins(path)
		require.NoError(t, err)
	})
}
