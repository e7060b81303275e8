package logs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a limited logger and its output.
type log struct {
	*slog.Logger
	lines *Limiter
	out   bytes.Buffer
}

func newLog(redact func(string) string) *log {
	l := &log{}
	l.lines = NewLimiter(slog.NewTextHandler(&l.out, nil), redact)
	l.Logger = slog.New(l.lines)
	return l
}

// count returns the number of times that the output contains a text.
func (l *log) count(text string) int {
	l.lines.mu.Lock() // prevents a report
	defer l.lines.mu.Unlock()
	return strings.Count(l.out.String(), text)
}

// sources returns the number of remembered sources.
func (l *log) sources() int {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return len(l.lines.sources)
}

func TestEachSourceHasItsOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(nil)
		bound := l.With("server", "bound")
		for i := range 10_000 {
			l.Warn("refused", "server", "loud", "i", i)
			bound.Warn("refused", "session", "s0") // concerns the server
			l.Warn("left", "session", "s1")
			l.Warn("own")
		}
		l.Warn("refused", "server", "quiet")
		l.Error("daemon stopped")
		for text, n := range map[string]int{"server=loud": burst, "server=bound": burst, "session=s1": burst, "msg=own": burst, "server=quiet": 1, `"daemon stopped"`: 1} {
			require.Equal(t, n, l.count(text), text)
		}
		time.Sleep(time.Second)
		for range 10_000 {
			l.Warn("refused", "server", "loud")
		}
		require.Equal(t, burst+perSecond, l.count("server=loud"))
		require.NoError(t, l.lines.Close())
		for _, text := range []string{"more=19890 server=loud", "more=9900 server=bound", "more=9900 session=s1", "more=9900 message=own"} {
			require.Equal(t, 1, l.count(text), text)
		}
		require.Equal(t, 4, l.count("more="))
	})
}

func TestManySessionsShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(nil)
		for i := range 10_000 {
			l.Warn("came", "session", fmt.Sprint("s", i))
		}
		l.Warn("refused", "server", "quiet")
		require.Equal(t, sessionsBurst, l.count("msg=came"))
		require.Equal(t, sessionsBurst+1, l.sources(), "many sessions need no memory")
		require.Equal(t, 1, l.count("server=quiet"), "servers do not share it")
		require.NoError(t, l.lines.Close())
		require.NoError(t, l.lines.Close())
		require.Equal(t, 1, l.count("more=9500 session=others"), "reported once")
	})
}

func TestQuietSourcesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(nil)
		for range burst + 2 {
			l.Warn("came", "session", "loud")
		}
		const n = 5000
		for i := range n {
			time.Sleep(time.Second)
			l.Warn("came", "session", fmt.Sprint("s", i))
		}
		synctest.Wait() // for the report at this time
		require.Equal(t, burst+n, l.count("msg=came"))
		require.Equal(t, 1, l.count("more=2 session=loud"), "but not before its dropped lines are reported")
		require.LessOrEqual(t, l.sources(), 20)
		time.Sleep(2 * reportInterval)
		synctest.Wait()
		require.Zero(t, l.sources())
		require.Nil(t, l.lines.timer, "an idle log has no timer")
	})
}

func TestDroppedLinesAreReportedAtTheirMostSevereLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(nil)
		for i := range burst + 3 {
			level := slog.LevelInfo
			if i == burst+1 {
				level = slog.LevelError
			}
			l.Log(t.Context(), level, "x", "server", "s")
		}
		require.NoError(t, l.lines.Close())
		require.Equal(t, 1, l.count("level=ERROR"))
		require.Contains(t, l.out.String(), "more=3 server=s")
		l.Log(t.Context(), slog.LevelInfo, "x", "server", "s")
		require.Nil(t, l.lines.timer, "no timer runs after Close")
	})
}

func TestAttributesAreBoundedAndVisible(t *testing.T) {
	secret := "hunter22"
	l := newLog(func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") })
	long := strings.Repeat("é", maxAttribute/2-2) + secret + strings.Repeat("y", 1<<20)
	for _, value := range []any{long, errors.New(long), []string{long}, fmt.Errorf("x: %w", errors.New(long))} {
		l.out.Reset()
		l.With("a", value).Warn("x", "b", value)
		require.Less(t, l.out.Len(), 3*maxAttribute)
		require.NotContains(t, l.out.String(), secret[:3], "redacted before the cut")
	}
	l.out.Reset()
	l.Warn(long) //nolint:sloglint // tests a large message
	require.Less(t, l.out.Len(), 3*maxAttribute)
	require.NotContains(t, l.out.String(), secret[:3])
	l.out.Reset()
	l.Error("x", "stack", strings.Repeat("s", 10<<10))
	require.Greater(t, l.out.Len(), 10<<10)
	l.out.Reset()
	l.Warn("x", "text", "a\U000e0041b\u202ec", "n", 7, "took", time.Second)
	require.NotContains(t, l.out.String(), "\U000e0041")
	require.NotContains(t, l.out.String(), "\u202e")
	require.Contains(t, l.out.String(), "n=7 took=1s")
}

func TestAFileIsBoundedWhateverHasThePlaceOfItsPredecessor(t *testing.T) {
	for name, before := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(path string) error { return os.WriteFile(path, []byte("old"), 0o644) },
		"a link":  func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "elsewhere"), path) },
		"a folder, which cannot be replaced": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, before(path+".1"))
			f, err := Open(path, 1000)
			require.NoError(t, err)
			line := []byte(strings.Repeat("x", 99) + "\n")
			for range 100 {
				_, err := f.Write(line)
				require.NoError(t, err)
				fi, err := os.Stat(path)
				require.NoError(t, err)
				require.LessOrEqual(t, fi.Size(), int64(1000))
			}
			require.NoError(t, f.Close())
			fi, err := os.Stat(path)
			require.NoError(t, err)
			require.Zero(t, fi.Mode().Perm()&0o077, "only the user can read it")
			require.NoFileExists(t, filepath.Join(filepath.Dir(path), "elsewhere"))
			all, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, all, 2, "nothing else is left")
			if fi, err := os.Lstat(path + ".1"); err == nil && !fi.IsDir() {
				require.EqualValues(t, 1000, fi.Size())
				require.Equal(t, os.FileMode(0o600), fi.Mode())
			}
		})
	}
}

func TestTheEndOfALogThatGrewBeyondItsBoundIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("a", 5000)+strings.Repeat("z", 1000)), 0o600))
	f, err := Open(path, 1000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	kept, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("z", 1000), string(kept))
}

func TestWhatIsNoFileIsWrittenAsItIs(t *testing.T) {
	f, err := Open(os.DevNull, 10)
	require.NoError(t, err)
	for range 10 {
		_, err = f.Write([]byte("more than ten bytes"))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	require.NoFileExists(t, os.DevNull+".1")
}

func BenchmarkLeftOut(b *testing.B) {
	l := newLog(nil)
	for b.Loop() {
		l.Warn("refused", "server", "loud")
	}
	b.StopTimer()
	_ = l.lines.Close()
}
