package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names in printed commands come from servers, and a shell executes their contents. Only
// registry/termtext may insert names into commands.
func TestOnlyTermtextPutsNamesIntoCommands(t *testing.T) {
	for _, p := range load(t) {
		if under(p.name, tests) || p.name == "registry/termtext" || under(p.name, "gateway/bench") || under(p.name, "gateway/deploy") {
			continue
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, at := range unquoted(f) {
				t.Errorf("%s inserts a name into a command; use termtext.Goblin or termtext.Command", files.Position(at))
			}
		}
	}
}

// The check detects every way of inserting a name into a command.
func TestCommandsWithNamesAreFound(t *testing.T) {
	for source, want := range map[string]int{
		`"goblin approve " + name`:                                  1,
		`"run: goblin approve " + s + " " + name`:                   1,
		`"run \"goblin login " + s + "\""`:                          1,
		`("goblin approve ") + name`:                                1,
		`"gob" + "lin approve " + name`:                             1,
		`"goblin " + verb`:                                          1,
		`fmt.Sprintf("run: goblin approve %s", name)`:               1,
		`fmt.Sprintf("%s; run \"goblin approve calc %q\"", a, b)`:   1,
		`fmt.Sprintf("goblin %s %s", verb, name)`:                   1,
		"fmt.Sprintf(`goblin call %[1]s --args x`, name)":           1,
		`fmt.Sprintf("run: chmod 700 %s", path)`:                    1,
		`"run: mkdir -p " + path`:                                   1,
		`fmt.Sprintf("kill %d or export %s=1", pid, name)`:          1,
		`strings.Join([]string{"goblin", "approve", name}, " ")`:    1,
		`append(words, "goblin", "approve", name)`:                  1,
		`b.WriteString("run: goblin approve ")`:                     1,
		`fmt.Sprint("goblin approve ", name)`:                       1,
		`termtext.Goblin("approve", name)`:                          0,
		`fmt.Sprintf("run: %s", termtext.Command("chmod 700", p))`:  0,
		`"goblin approve"`:                                          0,
		`"see: goblin approve; " + text`:                            0,
		`fmt.Sprintf("goblin validate reports all %d mistakes", n)`: 0,
		`fmt.Sprintf("\"goblin stop\" ends it: %s", err)`:           0,
		`"run: mkdir -p " + termtext.Portable(termtext.Word(p))`:    0,
		`"run: goblin approve " + termtext.Word(name)`:              1,
		`termtext.Command("goblin "+verb, names)`:                   0,
		`termtext.Command("goblin approve "+name, nil)`:             1,
		`termtext.Goblin("approve "+name)`:                          1,
		`a.Line("restart "+name)`:                                   1,
		`a.Line("restart", name)`:                                   0,
		`strings.TrimPrefix(path, "goblin ")`:                       0,
		`"goblin/gateway " + x`:                                     0,
	} {
		e, err := parser.ParseExpr(source)
		require.NoError(t, err, source)
		require.Len(t, unquoted(e), want, source)
	}
}

// programs are the first words of the commands that Goblin prints.
const programs = `(?:goblin|chmod|chown|kill|mkdir|export|rm|npx|uvx|env -i|ls -l)`

var (
	// ends matches a text that ends within a command.
	ends = regexp.MustCompile(`(?:^|[^\w./-])` + programs + `(?: [\w.=-]+)+ $|(?:^|[^\w./-])(?:goblin|kill|export|chmod|rm) $`)
	// filled matches a command with a verb of fmt.
	filled = regexp.MustCompile(`(?:^|[^\w./-])` + programs + `(?: [\w.=-]+)* ['"]?%[-+# 0-9.\[\]]*[a-zA-Z]`)
	// numbered matches sentences that begin like a command and continue with a count.
	numbered = regexp.MustCompile(`goblin validate reports all |goblin needs |^goblin %s \(`)
)

// constants are the parts of help texts, which contain constant words only.
var constants = map[string]bool{"Use": true, "Short": true, "Long": true, "Example": true}

// unquoted returns the positions where an expression's text becomes part of a command.
func unquoted(n ast.Node) (all []token.Pos) {
	report := func(e ast.Expr, text string, next ast.Expr) {
		text = numbered.ReplaceAllString(text, "")
		safe := fromDisplay(next) && !strings.Contains(text, "goblin")
		if filled.MatchString(text) || next != nil && !safe && ends.MatchString(text) {
			all = append(all, e.Pos())
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || !constants[key.Name]
		case *ast.AssignStmt:
			field, ok := n.Lhs[0].(*ast.SelectorExpr)
			return !ok || !constants[field.Sel.Name]
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
			parts := append(sum(n), nil)
			for i := 0; i < len(parts)-1; i++ {
				first, text := parts[i], ""
				for ; literal(parts[i]) != nil; i++ {
					text += *literal(parts[i])
				}
				report(first, text, parts[i])
				all = append(all, unquotedIn(parts[i])...)
			}
			return false
		case *ast.CallExpr:
			if fromDisplay(n) && len(n.Args) > 0 {
				// A command of two words begins with "goblin "; the rest is quoted.
				f := n.Fun.(*ast.SelectorExpr)
				if f.Sel.Name == "Goblin" && literal(n.Args[0]) == nil {
					all = append(all, n.Pos()) // the verb contains no names
				}
				if b, ok := n.Args[0].(*ast.BinaryExpr); ok && literal(b.X) != nil && *literal(b.X) == "goblin " {
					return false
				}
				return true
			}
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Line" && len(n.Args) > 0 && literal(n.Args[0]) == nil {
				if _, ok := n.Args[0].(*ast.BinaryExpr); ok {
					all = append(all, n.Pos()) // the verb contains no names
				}
			}
			f, ok := n.Fun.(*ast.Ident)
			reportList(n.Args, ok && f.Name == "append", report)
		case *ast.CompositeLit:
			reportList(n.Elts, true, report)
		case *ast.BasicLit:
			if text := literal(n); text != nil {
				report(n, *text, nil)
			}
		}
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
}

func unquotedIn(e ast.Expr) []token.Pos {
	if e == nil {
		return nil
	}
	return unquoted(e)
}

// reportList reports the texts of a list that are joined with their successors.
func reportList(exprs []ast.Expr, words bool, report func(e ast.Expr, text string, next ast.Expr)) {
	verb := regexp.MustCompile(`^[a-z]+$`)
	for i, e := range exprs {
		text := literal(e)
		if text == nil {
			continue
		}
		last := i+1 == len(exprs)
		switch {
		case words && *text == "goblin" && !last && literal(exprs[i+1]) != nil && verb.MatchString(*literal(exprs[i+1])):
			report(e, "goblin ", exprs[i+1]) // words of a command
		case last && strings.Contains(*text, "goblin "+strings.TrimSpace(lastWord(*text))+" "):
			report(e, *text, e)
		case !last && strings.HasSuffix(*text, " "):
			report(e, *text, exprs[i+1])
		}
	}
}

// lastWord returns the last word of a text, or "-".
func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "-"
	}
	return words[len(words)-1]
}

// fromDisplay reports whether an expression calls the quoting package.
func fromDisplay(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == "termtext"
}

// sum returns the operands of a chain of +.
func sum(e ast.Expr) []ast.Expr {
	if p, ok := e.(*ast.ParenExpr); ok {
		return sum(p.X)
	}
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return append(sum(b.X), sum(b.Y)...)
	}
	return []ast.Expr{e}
}

// literal returns the text of a string literal, or nil.
func literal(e ast.Expr) *string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			return &text
		}
	}
	return nil
}
