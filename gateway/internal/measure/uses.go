package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// built is a package as the go command has compiled it for this system.
type built struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

// exports has the packages of the module at root and all that they import, with the
// files of their compiled declarations.
func exports(root string) (map[string]built, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := make(map[string]built)
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p built
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// uses counts in how many directions the files of a package use each other's
// declarations, and between how many pairs in both.
func uses(all map[string]built, p built) (directions, mutual int, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, 0, err
		}
		files = append(files, f)
	}
	checker := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := checker.Check(p.ImportPath, fset, files, &info)
	if err != nil {
		return 0, 0, fmt.Errorf("check %s: %w", p.ImportPath, err)
	}
	type use struct{ from, to string }
	seen := make(map[use]bool)
	for id, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(object.Pos()).Filename
		if from != to {
			seen[use{from, to}] = true
		}
	}
	for u := range seen {
		if u.from < u.to && seen[use{u.to, u.from}] {
			mutual++
		}
	}
	return len(seen), mutual, nil
}
