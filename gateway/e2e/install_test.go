package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The install script checks a download before it unpacks any of it. If something is
// wrong, it leaves the installed program unchanged.
func TestTheInstallScriptInstallsOnlyWhatTheSumsSay(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl", "tar", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	system, machine := runtime.GOOS, runtime.GOARCH
	if system != "linux" && system != "darwin" || machine != "amd64" && machine != "arm64" {
		t.Skip("there are no archives for", system, machine)
	}
	name := fmt.Sprintf("goblin_1.2.3_%s_%s", system, machine)
	archive := packed(t, name)
	sum := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	line := sum(archive) + "  " + name + ".tar.gz\n"
	for what, test := range map[string]struct {
		sums    string
		archive []byte
		fault   string // "" if it installs
	}{
		"what was released":            {sum(nil) + "  goblin_1.2.3_plan9_amd64.tar.gz\n" + line, archive, ""},
		"another archive":              {line, append(bytes.Clone(archive), 0), "checksum mismatch"},
		"no archive":                   {line, nil, "cannot download"},
		"no archive of this machine":   {sum(nil) + "  goblin_1.2.3_plan9_mips.tar.gz\n", archive, "has no archive"},
		"two archives of this machine": {line + strings.ReplaceAll(line, "1.2.3", "1.2.4"), archive, "has several archives"},
		"a page instead of the sums":   {"<html>not found</html>", archive, "has no archive"},
		"a name that leads elsewhere":  {sum(archive) + "  ../" + name + ".tar.gz\n", archive, "has no archive"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/SHA256SUMS":
					_, _ = w.Write([]byte(test.sums))
				case r.URL.Path == "/"+name+".tar.gz" && test.archive != nil:
					_, _ = w.Write(test.archive)
				default:
					http.NotFound(w, r)
				}
			}))
			defer releases.Close()
			prefix := t.TempDir()
			program := filepath.Join(prefix, "bin", "goblin")
			require.NoError(t, os.Mkdir(filepath.Dir(program), 0o755))
			require.NoError(t, os.WriteFile(program, []byte("old"), 0o700))
			c := exec.Command("sh", root+"/gateway/deploy/install.sh")
			c.Env = append(os.Environ(), "GOBLIN_RELEASES="+releases.URL, "PREFIX="+prefix)
			said, err := c.CombinedOutput()
			if test.fault != "" {
				require.Error(t, err, string(said))
				require.Contains(t, string(said), test.fault)
				require.Equal(t, "old", read(t, program))
				return
			}
			require.NoError(t, err, string(said))
			require.Contains(t, string(said), "installed goblin 1.2.3 as "+program)
			require.FileExists(t, filepath.Join(prefix, "share/man/man1/goblin.1.gz"))
		})
	}
}

// packed returns a release archive with a program that prints its version.
func packed(t *testing.T, name string) []byte {
	t.Helper()
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	a := tar.NewWriter(z)
	for file, held := range map[string]string{"goblin": "#!/bin/sh\necho goblin 1.2.3\n", "man/goblin.1.gz": "page"} {
		require.NoError(t, a.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o755, Size: int64(len(held))}))
		_, err := a.Write([]byte(held))
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	require.NoError(t, z.Close())
	return text.Bytes()
}
