package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rename computes the new texts.
func (t *tree) rename(p project) error {
	for name, text := range t.texts {
		var err error
		switch {
		case strings.HasSuffix(name, ".go"):
			text, err = t.goFile(name, text, p.module)
		case path.Base(name) == "go.mod":
			text = t.nestedModule(text, p.module)
		case t.hosted():
			text = t.replaceAll(text, p.module)
		}
		if err != nil {
			return err
		}
		t.changed[name] = text
	}
	for _, at := range p.places() {
		text, _ := t.text(at.file)
		text, ok := at.set(text)
		if !ok {
			return fmt.Errorf("%s has no text like %s", at.file, at.pattern)
		}
		t.changed[at.file] = text
	}
	return t.readme(p)
}

// hosted reports whether the current module path begins with a host. Such a path cannot be
// mistaken for another text.
func (t *tree) hosted() bool {
	host, _, _ := strings.Cut(t.module, "/")
	return strings.Contains(host, ".")
}

// replaceAll replaces the module path wherever it stands alone or begins a longer path.
func (t *tree) replaceAll(text, module string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, t.module)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if longerBefore.MatchString(before) || longerAfter.MatchString(after) {
			out.WriteString(t.module)
		} else {
			out.WriteString(module)
		}
		text = after
	}
}

// These match around a path that is only a part of another one.
var (
	longerBefore = regexp.MustCompile(`[\w.~-]$`)
	longerAfter  = regexp.MustCompile(`^[\w~-]`)
)

// nestedModule changes the path of a module in a folder of this one.
func (t *tree) nestedModule(text, module string) string {
	return moduleLine.ReplaceAllStringFunc(text, func(line string) string {
		below, ok := strings.CutPrefix(line, "module "+t.module+"/")
		if !ok {
			return line
		}
		return "module " + module + "/" + below
	})
}

// readme adds the line that clones the repository to README.md.
func (t *tree) readme(p project) error {
	text, _ := t.text("README.md")
	// "go install" with a version needs no clone.
	text = strings.Replace(text, "From a clone of this\nrepository, with ", "With ", 1)
	clone := "git clone " + p.homepage() + " && cd " + program
	if old := regexp.MustCompile(`(?m)^git clone .*$`); old.MatchString(text) {
		text = old.ReplaceAllLiteralString(text, clone)
	} else {
		run := regexp.MustCompile(`(?m)^go run \.`)
		at := run.FindStringIndex(text)
		if at == nil {
			return fmt.Errorf("README.md has no line %q or %q", "git clone …", "go run .")
		}
		text = text[:at[0]] + clone + "\n" + text[at[0]:]
	}
	t.changed["README.md"] = text
	return nil
}

// edit replaces a part of a text.
type edit struct {
	from, to int
	text     string
}

// goFile changes the package paths of a Go file: in imports, other strings, comments and the
// constants that are called modulePath.
func (t *tree) goFile(name, text, module string) (string, error) {
	if module == t.module || !strings.Contains(text, t.module) {
		return text, nil
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if strings.Contains("/"+name, "/testdata/") && err != nil {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	return apply(name, text, t.edits(files, f, module))
}

// edits returns the changes of a parsed Go file.
func (t *tree) edits(files *token.FileSet, f *ast.File, module string) (edits []edit) {
	replace := func(at token.Pos, old, text string) {
		if from := files.PositionFor(at, false).Offset; old != text {
			edits = append(edits, edit{from, from + len(old), text})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if len(n.Names) == 1 && n.Names[0].Name == "modulePath" && len(n.Values) == 1 {
				if v, ok := n.Values[0].(*ast.BasicLit); ok {
					replace(v.Pos(), v.Value, strconv.Quote(module))
				}
				return false
			}
		case *ast.ImportSpec:
			value, err := strconv.Unquote(n.Path.Value)
			if below, ok := strings.CutPrefix(value, t.module); err == nil && ok && (below == "" || below[0] == '/') {
				replace(n.Path.Pos(), n.Path.Value, strconv.Quote(module+below))
			}
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				replace(n.Pos(), n.Value, t.literal(n.Value, module))
			}
		}
		return true
	})
	for _, group := range f.Comments {
		for _, c := range group.List {
			replace(c.Pos(), c.Text, t.paths(c.Text, module))
		}
	}
	return edits
}

// literal returns the source of a string with the new path.
func (t *tree) literal(source, module string) string {
	if t.hosted() {
		return t.replaceAll(source, module)
	}
	value, err := strconv.Unquote(source)
	if below, ok := strings.CutPrefix(value, t.module+"/"); err == nil && ok && t.packages[below] {
		return strconv.Quote(module + "/" + below)
	}
	return source
}

// paths replaces the paths of this module's packages in a comment.
func (t *tree) paths(text, module string) string {
	if t.hosted() {
		return t.replaceAll(text, module)
	}
	named := regexp.MustCompile(`(^|[^\w./~-])` + regexp.QuoteMeta(t.module) + `/([\w/]+)`)
	return named.ReplaceAllStringFunc(text, func(found string) string {
		m := named.FindStringSubmatch(found)
		if !t.packages[m[2]] {
			return found
		}
		return m[1] + module + "/" + m[2]
	})
}

// apply makes the edits, and sorts imports again.
func apply(name, text string, edits []edit) (string, error) {
	if len(edits) == 0 {
		return text, nil
	}
	// Comments were collected last.
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	end := 0
	for _, e := range edits {
		out.WriteString(text[end:e.from])
		out.WriteString(e.text)
		end = e.to
	}
	out.WriteString(text[end:])
	formatted, err := format.Source([]byte(out.String()))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(formatted), nil
}
