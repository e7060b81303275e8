package e2e

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Paths of the programs that tests start. All packages of a run share them.
var (
	Goblin     string // the tested binary; set by Provide
	TestServer string // set by Provide and ProvideTestServer
)

// sources are the files and folders that the programs are built from.
var sources []string

// Use must be called in each test that starts the programs; NewWorld does. Tests import
// nothing of these programs, so "go test" would reuse cached results after a change. It
// only notices files and variables that are accessed during a test.
var Use = sync.OnceFunc(func() {
	for _, path := range sources {
		_, _ = os.Stat(path)
	}
	_, _ = os.Getenv("GOFLAGS"), Racing()
	if other := os.Getenv("GOBLIN_E2E_BINARY"); other != "" {
		_, _ = os.Stat(other)
	}
})

// Provide builds Goblin and the test server, unless they were already built from the same
// sources.
func Provide() error {
	if err := ProvideTestServer(); err != nil {
		return err
	}
	path, err := provide("goblin", ".")
	Goblin = cmp.Or(os.Getenv("GOBLIN_E2E_BINARY"), path)
	return err
}

// ProvideTestServer is like Provide, for tests that don't start Goblin. A change of
// Goblin doesn't rebuild anything.
func ProvideTestServer() (err error) {
	TestServer, err = provide("testserver", "gateway/internal/testserver")
	return err
}

// provide returns the path of a program of the module. It builds it, unless it was
// already built from the same sources.
func provide(name, folder string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	fingerprint, err := fingerprint(filepath.Join(root, folder))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "goblin-e2e")
	dir := filepath.Join(cache, fingerprint)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", fmt.Errorf("create the folder of the programs: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		if err := buildOnce(cache, dir, filepath.Join(root, folder)); err != nil {
			return "", err
		}
	}
	_ = os.Chtimes(dir, time.Time{}, time.Now()) // mark it as used
	return filepath.Join(dir, name), nil
}

// moduleRoot returns the folder of the tested module.
func moduleRoot() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: no go.mod above %s", at)
		}
	}
}

// fingerprint records the sources of a folder and returns a hash that changes with each
// of them. It skips folders that are not part of Goblin.
func fingerprint(root string) (fingerprint string, err error) {
	sum := sha256.New()
	fmt.Fprintln(sum, root, runtime.Version(), os.Getenv("GOBLIN_E2E_RACE"), os.Getenv("GOFLAGS"))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "e2e", "bench", "internal"}, name)) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".md") {
			return err
		}
		sources = append(sources, path)
		if d.IsDir() {
			return nil
		}
		fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the sources: %w", err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// buildOnce builds a program unless another test has built it. It waits for concurrent
// builds.
func buildOnce(cache, dir, folder string) error {
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("wait for other builds: %w", err)
	}
	defer lock.Close()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return goBuild(cache, dir, folder)
}

// goBuild builds the program of a folder into dir. It removes programs from the cache
// that were unused for a day.
func goBuild(cache, dir, folder string) error {
	fresh, err := os.MkdirTemp(cache, "build")
	if err != nil {
		return fmt.Errorf("create a folder: %w", err)
	}
	if err := compile(folder, fresh, ""); err != nil {
		return err
	}
	old, _ := os.ReadDir(cache)
	for _, one := range old {
		if info, err := one.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(cache, one.Name()))
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("store the program: %w", err)
	}
	return nil
}

// compile builds the program of a folder into the file or folder at path, with additional
// linker flags.
func compile(folder, path, ldflags string) error {
	args, env := []string{"build", "-ldflags=-s -w " + ldflags, "-o", path}, os.Environ()
	if Racing() {
		args, env = append(args, "-race"), append(env, "CGO_ENABLED=1")
	} else {
		env = append(env, "CGO_ENABLED=0") // as released; also starts faster
	}
	build := exec.Command("go", append(args, ".")...)
	build.Dir = folder
	build.Env = env
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}

// BuildAs builds a development version of Goblin with its own build ID. It replaces the
// file at the absolute path as "go build" does.
func BuildAs(path, buildID string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := compile(root, next, "-buildid="+buildID); err != nil {
		return err
	}
	return os.Rename(next, path)
}
