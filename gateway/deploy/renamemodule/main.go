// Command renamemodule sets the module path and all texts that follow from it.
//
// It changes imports and other package paths, and the clone and install lines of README.md. It
// also sets the addresses of releases and packages, and the contact for reports.
//
// Run it in the root of the repository. A second run with the same values changes nothing. It
// writes no file unless all of them can be changed.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	module := flag.String("module", "", "the new module `PATH`, such as github.com/owner/goblin")
	contact := flag.String("contact", "", "the mail `ADDRESS` or URL for private reports; on github.com the default is its form for vulnerabilities")
	root := flag.String("root", ".", "the root `FOLDER` of the repository")
	flag.Parse()
	changed, err := rename(*root, *module, *contact)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename-module:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "Changed %d files.\n", changed)
}

// rename returns the number of files that it changed.
func rename(root, module, contact string) (changed int, err error) {
	p, err := newProject(module, contact)
	if err != nil {
		return 0, err
	}
	t, err := readTree(root)
	if err != nil {
		return 0, err
	}
	if err := t.rename(p); err != nil {
		return 0, err
	}
	return t.write()
}

// tree holds the texts of a repository.
type tree struct {
	root     string
	module   string            // the current module path
	texts    map[string]string // by slash-separated path
	packages map[string]bool   // folders with Go files; "." is the root
	changed  map[string]string // new texts
}

// skipped are names of folders without files of the project.
var skipped = []string{".git", ".task", "dist", "dist-extras", "node_modules"}

func readTree(root string) (*tree, error) {
	t := &tree{root: root, texts: map[string]string{}, packages: map[string]bool{}, changed: map[string]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil // a program or picture
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		t.texts[name] = string(text)
		if folder := filepath.ToSlash(filepath.Dir(name)); strings.HasSuffix(name, ".go") {
			t.packages[folder] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := moduleLine.FindStringSubmatch(t.texts["go.mod"])
	if found == nil {
		return nil, fmt.Errorf("%s has no go.mod with a module path; run it in the root of the repository", root)
	}
	t.module = found[1]
	return t, nil
}

// text returns the text of a file, with the changes so far.
func (t *tree) text(name string) (string, bool) {
	if text, ok := t.changed[name]; ok {
		return text, true
	}
	text, ok := t.texts[name]
	return text, ok
}

// write writes the changed files and returns their number.
func (t *tree) write() (int, error) {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(t.changed)) {
		if t.changed[name] == t.texts[name] {
			continue
		}
		path := filepath.Join(t.root, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if err != nil {
			return n, err
		}
		if err := os.WriteFile(path, []byte(t.changed[name]), info.Mode()); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
