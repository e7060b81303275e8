package mcpregistry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/gateway/atomicfile"
	"goblin/gateway/state"
)

const (
	freshTime = 10 * time.Minute // younger answers are used without a request
	maxFiles  = 200
	maxKept   = 64 << 20 // bytes
)

// Cache stores answers in a folder, so that they are available offline. Errors are
// ignored.
type Cache struct {
	folder string
	now    func() time.Time
}

// OpenCache returns the cache in goblin/registry in $XDG_CACHE_HOME or ~/.cache, or nil
// without a home directory.
func OpenCache(getenv func(string) string) *Cache {
	dir := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return nil
		}
		dir = filepath.Join(home, ".cache")
	}
	return &Cache{folder: filepath.Join(dir, "goblin", "registry"), now: time.Now}
}

type page struct {
	body []byte
	at   time.Time
}

const suffix = ".json"

func (c *Cache) path(to string) string {
	sum := sha256.Sum256([]byte(to))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:16])+suffix)
}

// load returns the cached answer, or nil, and whether it is old.
func (c *Cache) load(to string) (k *page, old bool) {
	if c == nil {
		return nil, true
	}
	f, info, err := state.Open(c.path(to))
	if err != nil {
		return nil, true
	}
	defer f.Close()
	if info.Size() > maxBody {
		return nil, true
	}
	body, err := io.ReadAll(io.LimitReader(f, maxBody))
	if err != nil {
		return nil, true
	}
	age := c.now().Sub(info.ModTime())
	return &page{body, info.ModTime()}, age < 0 || age > freshTime
}

// store evicts the oldest answers over the limits.
func (c *Cache) store(to string, body []byte) {
	if c == nil || os.MkdirAll(c.folder, 0o700) != nil {
		return
	}
	if atomicfile.Write(c.path(to), body) == nil {
		c.prune()
	}
}

func (c *Cache) prune() {
	files, _ := os.ReadDir(c.folder)
	var all []os.FileInfo
	for _, f := range files {
		if info, err := f.Info(); err == nil && strings.HasSuffix(f.Name(), suffix) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	bytes := int64(0)
	for i, info := range all {
		if bytes += info.Size(); i >= maxFiles || bytes > maxKept {
			_ = os.Remove(filepath.Join(c.folder, info.Name()))
		}
	}
}

// Folder returns the cache's folder.
func (c *Cache) Folder() string { return c.folder }
