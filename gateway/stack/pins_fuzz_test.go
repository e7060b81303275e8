package stack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/state"
)

// FuzzFile: a file is taken as a whole or refused with its name; one that is
// taken can be written again.
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
