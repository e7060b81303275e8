package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// maxSentence is the maximum length of a sentence in a comment, in words.
const maxSentence = 20

// Doc comments describe a thing by a noun or a verb, not by a riddle.
var riddle = regexp.MustCompile(`^[A-Za-z][\w.]* ((is|are) (what|who|whom|whose|how|why|where|when|whether|that of|those)\b|says\b|gives\b|knows\b)`)

// TestProseIsPlain checks comments and string literals of all Go files. Vale checks the
// phrases of comments and Markdown; see task prose.
func TestProseIsPlain(t *testing.T) {
	phrases := readPhrases(t)
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			files++
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, mistake := range checkProse(t, strings.TrimPrefix(path, root+"/"), src, phrases) {
				t.Error(mistake)
			}
		}
		return nil
	}))
	require.Greater(t, files, 1000)
}

// TestOddProseIsFound shows that the check can fail.
func TestOddProseIsFound(t *testing.T) {
	for comment, mistake := range map[string]string{
		"X returns a value.":                                     "",
		"X is what callers get.":                                 "x.go:3: doc comment: begin with a verb or a noun: X is what",
		"X says why a call failed.":                              "x.go:3: doc comment: begin with a verb or a noun: X says",
		"X waits. " + strings.Repeat("Go ", maxSentence+1) + ".": "x.go:3: sentence of 21 words: Go Go Go Go Go Go",
		"X waits; it reads; it writes.":                          "x.go:3: several semicolons in a sentence: X waits; it reads; it writes",
	} {
		src := "package x\n\n// " + comment + "\nconst X = `a mended one`\n"
		found := checkProse(t, "x.go", []byte(src), readPhrases(t))
		wanted := []string{`x.go:4: string: write "fix, repair" instead of "mended"`}
		if mistake != "" {
			wanted = append([]string{mistake}, wanted...)
		}
		require.Equal(t, wanted, found, comment)
	}
}

// phrase is a pattern of Phrases.yml with what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	better  string
}

func readPhrases(t *testing.T) (phrases []phrase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".ci/vale/Goblin/Phrases.yml"))
	require.NoError(t, err)
	var style struct{ Swap map[string]string }
	require.NoError(t, yaml.Unmarshal(text, &style))
	require.Greater(t, len(style.Swap), 50)
	for pattern, better := range style.Swap {
		phrases = append(phrases, phrase{regexp.MustCompile(pattern), better})
	}
	return phrases
}

// checkProse returns the mistakes of one file. Literals of tests are not checked: they may
// quote other programs.
func checkProse(t *testing.T, path string, src []byte, phrases []phrase) (mistakes []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	at := func(n ast.Node) string {
		return path + ":" + strconv.Itoa(fset.Position(n.Pos()).Line) + ": "
	}
	for _, group := range f.Comments {
		text := group.Text()
		if odd := riddle.FindString(text); odd != "" {
			mistakes = append(mistakes, at(group)+"doc comment: begin with a verb or a noun: "+odd)
		}
		for _, sentence := range sentences(text) {
			words := strings.Fields(sentence)
			if len(words) > maxSentence {
				mistakes = append(mistakes, at(group)+"sentence of "+strconv.Itoa(len(words))+" words: "+strings.Join(words[:6], " "))
			}
			if strings.Count(sentence, "; ") > 1 {
				mistakes = append(mistakes, at(group)+"several semicolons in a sentence: "+strings.Join(words[:6], " "))
			}
		}
	}
	if strings.HasSuffix(path, "_test.go") {
		return mistakes
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		if !strings.Contains(text, " ") {
			return true // a name
		}
		for _, p := range phrases {
			if odd := p.pattern.FindString(text); odd != "" {
				mistakes = append(mistakes, at(literal)+"string: write "+strconv.Quote(p.better)+" instead of "+strconv.Quote(odd))
			}
		}
		return true
	})
	return mistakes
}

// sentenceEnd is the end of a sentence or of an item of a list.
var sentenceEnd = regexp.MustCompile(`[.!?:](\s|$)|\n\s*- `)

// sentences returns the sentences of a comment. Indented text, such as code and tables, is
// left out.
func sentences(text string) (all []string) {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") || strings.Contains(line, "|") {
			line = ".\n"
		}
		lines = append(lines, line)
	}
	for paragraph := range strings.SplitSeq(strings.Join(lines, ""), "\n\n") {
		all = append(all, sentenceEnd.Split(paragraph, -1)...)
	}
	return all
}
