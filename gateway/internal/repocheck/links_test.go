package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each doc link, such as [path.Base], refers to a declaration or an imported package.
func TestDocLinksNameDeclarations(t *testing.T) {
	link := regexp.MustCompile(`(?:^|[\s(*])\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Za-z]\w*)?)\]`)
	declared, ours, imported := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var links [][3]string // package, name, position
	for _, p := range load(t) {
		dir := path.Base(p.name)
		ours[dir] = true
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, i := range f.Imports {
				imported[path.Base(strings.Trim(i.Path.Value, `"`))] = true
				if i.Name != nil {
					imported[i.Name.Name] = true
				}
			}
			for _, g := range f.Comments {
				for _, m := range link.FindAllStringSubmatch(g.Text(), -1) {
					links = append(links, [3]string{dir, m[1], files.Position(g.Pos()).String()})
				}
			}
			of := "" // the declared type
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					of = n.Name.Name
					declared[dir+"."+of] = true
				case *ast.ValueSpec:
					for _, id := range n.Names {
						declared[dir+"."+id.Name] = true
					}
				case *ast.Field:
					for _, id := range n.Names {
						declared[dir+"."+of+"."+id.Name] = true
					}
				case *ast.FuncDecl:
					name := n.Name.Name
					if n.Recv != nil {
						receiver, _, _ := strings.Cut(types.ExprString(n.Recv.List[0].Type), "[")
						name = strings.TrimPrefix(receiver, "*") + "." + name
					}
					declared[dir+"."+name] = true
					return false
				}
				return true
			})
		}
	}
	require.NotEmpty(t, links)
	for _, l := range links {
		head, _, _ := strings.Cut(l[1], ".")
		if !declared[l[0]+"."+l[1]] && !declared[l[1]] && (ours[head] || !imported[head]) {
			t.Errorf("%s: no declaration for [%s]", l[2], l[1])
		}
	}
}
