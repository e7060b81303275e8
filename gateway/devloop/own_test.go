package devloop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFilesThatEachBuildWritesAreIgnored(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := ownChanges{folder: t.TempDir()}
	round := func(files ...string) (kept, found []string) {
		o.begin(now)
		kept, found = o.filter(files, now.Add(time.Second))
		now = now.Add(2 * time.Second)
		o.end(now)
		return kept, found
	}
	for range maxOwnRounds - 1 {
		kept, found := round("gen.go")
		require.Equal(t, []string{"gen.go"}, kept)
		require.Empty(t, found)
	}
	kept, found := round("gen.go")
	require.Equal(t, []string{"gen.go"}, kept, "built once more")
	require.Equal(t, []string{"gen.go"}, found)
	kept, _ = round("gen.go")
	require.Empty(t, kept)
	kept, _ = round("gen.go", "a.go")
	require.Equal(t, []string{"a.go"}, kept, "other files still count")

	// A change by the user counts again.
	kept, found = o.filter([]string{"gen.go"}, now.Add(time.Minute))
	require.Equal(t, []string{"gen.go"}, kept)
	require.Empty(t, found)
}

func TestChangesByTheUserAreNotTheBuilds(t *testing.T) {
	t.Parallel()
	o := ownChanges{folder: t.TempDir()}
	path := filepath.Join(o.folder, "a.go")
	now := time.Now()
	for range 10 {
		o.begin(now)
		o.end(now.Add(time.Second))
		now = now.Add(3 * time.Second)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now, now)) // after the restart
		kept, _ := o.filter([]string{"a.go"}, now)
		require.Equal(t, []string{"a.go"}, kept)
	}
}
