package recorder_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachFile visits the decompressed content of all files.
func eachFile(t *testing.T, folder string, visit func(path, content string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			return nil
		}
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		raw, err := io.ReadAll(f)
		require.NoError(t, err)
		visit(path, string(raw))
		if z, err := gzip.NewReader(strings.NewReader(string(raw))); err == nil {
			text, err := io.ReadAll(z)
			require.NoError(t, err)
			visit(path, string(text))
		}
		return nil
	}))
}
