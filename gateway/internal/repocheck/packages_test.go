package repocheck

import (
	"bytes"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modulePath is set by gateway/deploy/renamemodule.
const modulePath = "goblin"

// source is a package of this module, with the files for all systems and tags.
type source struct {
	*build.Package
	name  string // import path within the module; "main" for the root
	lines int    // of all files except tests
}

// tests is the folder of the end-to-end tests, whose harness is not production code.
const tests = "gateway/e2e"

// packages returns the packages of the module at root, by path.
func packages(root string) (all []source, err error) {
	reader := build.Default
	reader.UseAllFiles = true
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if strings.Contains("/"+rel+"/", "/testdata/") || path != root && exists(filepath.Join(path, "go.mod")) {
			return nil
		}
		p, err := reader.ImportDir(path, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		lines, err := production(path)
		if err != nil {
			return err
		}
		all = append(all, source{Package: p, name: within(modulePath + "/" + rel), lines: lines})
		return nil
	})
	return all, err
}

// production counts the lines of a folder's Go files, except tests.
func production(dir string) (lines int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	return lines, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// within returns an import path without the module, or "" for third-party packages.
func within(path string) string {
	if path == modulePath || path == modulePath+"/." {
		return "main"
	}
	rest, ours := strings.CutPrefix(path, modulePath+"/")
	if !ours {
		return ""
	}
	return rest
}
