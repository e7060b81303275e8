package calltest

import (
	"fmt"
	"strings"
	"unicode"

	"goblin/registry/savedcall"
	"goblin/registry/termtext"
)

// maxSummary is the longest summary, in bytes. GitHub's limit is 1 MiB per step.
const maxSummary = 900 << 10

// Summary returns the report in Markdown, for the page of a GitHub job. Texts of servers
// cannot change its layout.
func (r *Report) Summary() string {
	t := r.Totals()
	var out strings.Builder
	fmt.Fprintf(&out, "### goblin test: %s\n\n", markdown(t.String()))
	out.WriteString("| | file | call | time | |\n|---|---|---|---:|---|\n")
	left := 0
	for i := range r.Results {
		one := &r.Results[i]
		if out.Len() > maxSummary {
			left++
			continue
		}
		why, _ := r.headline(one)
		took := ""
		if one.Answer.Time > 0 {
			took = termtext.Duration(one.Answer.Time)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", one.State, markdown(one.Call.Path), markdown(one.Call.Name), took, markdown(termtext.Truncate(why, 1000)))
	}
	if left > 0 {
		fmt.Fprintf(&out, "\n%s not shown.\n", termtext.Count(left, "call"))
	}
	out.WriteString("\n")
	return out.String()
}

// markdown returns text that Markdown and HTML show unchanged, in one line. GitHub makes
// links of names that begin with "www.".
func markdown(s string) string {
	var out strings.Builder
	for _, c := range termtext.Line(s) {
		if c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) && !strings.ContainsRune("/-.,()%", c) {
			fmt.Fprintf(&out, "&#%d;", c)
			continue
		}
		out.WriteRune(c)
	}
	return strings.ReplaceAll(out.String(), "www.", "www&#46;")
}

// Annotations returns a workflow command of GitHub per failure, which shows it beside the
// line of the file.
func (r *Report) Annotations(one *savedcall.Result) string {
	var out strings.Builder
	if one.State != savedcall.Failed {
		return ""
	}
	for _, f := range one.Failures() {
		fmt.Fprintf(&out, "::error file=%s,line=%d,title=%s::%s\n",
			property(r.inRoot(f.Path)), max(1, f.Line), property("goblin test: "+one.Call.Name), data(r.text(f.String())))
	}
	return out.String()
}

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func data(s string) string     { return dataEscapes.Replace(s) }
func property(s string) string { return propertyEscapes.Replace(termtext.Line(s)) }
