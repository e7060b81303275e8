//go:build systems

package repocheck

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A compiler for another system has to compile all that Goblin imports first, which
// takes minutes. What breaks there are names that only one system has, and for those
// the types of everything are enough.
func TestAllCodeHasItsTypesOnEverySystem(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		t.Run(system, func(t *testing.T) {
			list := exec.Command("go", "list", "-deps", "-test", "-tags", "interop,conformance,soak,faults,e2e,bench", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard", "./...")
			list.Dir, list.Stderr = root, os.Stderr
			list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
			out, err := list.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, list.Start())
			checked := 0
			done := known{"unsafe": types.Unsafe}
			for in := json.NewDecoder(out); ; checked++ {
				var p struct {
					ImportPath, Dir string
					GoFiles         []string
					ImportMap       map[string]string
					Standard        bool
				}
				if err := in.Decode(&p); errors.Is(err, io.EOF) {
					break
				} else {
					require.NoError(t, err)
				}
				if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
					continue // the go command writes the main package of tests
				}
				fset := token.NewFileSet()
				var files []*ast.File
				for _, name := range p.GoFiles {
					f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
					require.NoError(t, err)
					files = append(files, f)
				}
				path, _, _ := strings.Cut(p.ImportPath, " ") // of a package with its tests
				checker := types.Config{
					Importer:         imported{done, p.ImportMap},
					Sizes:            types.SizesFor("gc", runtime.GOARCH),
					IgnoreFuncBodies: within(path) == "",
				}
				if p.Standard {
					checker.Error = func(error) {} // its compiler knows more
				}
				pkg, err := checker.Check(path, fset, files, nil)
				if !p.Standard {
					require.NoError(t, err)
				}
				done[p.ImportPath] = pkg
			}
			require.NoError(t, list.Wait())
			require.Greater(t, checked, 300)
		})
	}
}

// known are the packages that have been checked, by the path that the go command gives.
type known map[string]*types.Package

// imported finds the packages that one package imports.
type imported struct {
	known
	names map[string]string // those whose path is another one for this package
}

func (i imported) Import(path string) (*types.Package, error) {
	if other := i.names[path]; other != "" {
		path = other
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed before: " + path)
}
