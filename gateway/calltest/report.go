package calltest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/registry/savedcall"
	"goblin/registry/termtext"
)

// Report collects the results of a run.
type Report struct {
	Results []savedcall.Result
	Began   time.Time
	Took    time.Duration
	// Clean hides secrets in texts; nil: there are none.
	Clean func(string) string
	// Root is the folder of the repository, for annotations and SARIF; "": unknown.
	Root string
}

// Totals are the numbers of calls by their result.
type Totals struct {
	Calls       int `json:"calls"`
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Skipped     int `json:"skipped"`
	Unreachable int `json:"unreachable,omitempty"` // also counted as failed
}

// Totals counts the results.
func (r *Report) Totals() (t Totals) {
	for i := range r.Results {
		t.add(&r.Results[i])
	}
	return t
}

func (t *Totals) add(r *savedcall.Result) {
	t.Calls++
	switch r.State {
	case savedcall.Passed:
		t.Passed++
	case savedcall.Skipped:
		t.Skipped++
	default:
		t.Failed++
		if r.Unreachable {
			t.Unreachable++
		}
	}
}

// String returns the line at the end of a report.
func (t Totals) String() string {
	parts := []string{termtext.FormatCount(t.Passed) + " passed"}
	if t.Failed > 0 {
		parts = append(parts, termtext.FormatCount(t.Failed)+" failed")
	}
	if t.Skipped > 0 {
		parts = append(parts, termtext.FormatCount(t.Skipped)+" skipped")
	}
	return fmt.Sprintf("%s: %s", termtext.Count(t.Calls, "call"), strings.Join(parts, ", "))
}

// Sort orders the results by folder and file.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Results, func(a, b savedcall.Result) int { return compareFiles(a.Call.Path, b.Call.Path) })
}

// folders divides sorted results.
func (r *Report) folders() (folders [][]savedcall.Result) {
	for _, one := range r.Results {
		last := len(folders) - 1
		if last >= 0 && folderOf(&folders[last][0]) == folderOf(&one) {
			folders[last] = append(folders[last], one)
			continue
		}
		folders = append(folders, []savedcall.Result{one})
	}
	return folders
}

func folderOf(r *savedcall.Result) string { return filepath.Dir(r.Call.Path) }

var labels = map[savedcall.State]string{savedcall.Passed: "ok  ", savedcall.Failed: "FAIL", savedcall.Skipped: "skip"}

// Text describes a result: one line, and one or more per failure. The text is safe for
// terminals. No line begins with white space or "::", so that a server cannot send
// commands to a CI system.
func (r *Report) Text(one *savedcall.Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s  %s", labels[one.State], termtext.Line(one.Call.Path), termtext.Line(one.Call.Name))
	if one.Answer.Time > 0 {
		fmt.Fprintf(&out, "  %s", termtext.Duration(one.Answer.Time))
	}
	out.WriteByte('\n')
	for _, f := range one.Failures() {
		fmt.Fprintf(&out, "|  %s: %s\n", termtext.Line(f.Place()), r.text(f.String()))
		for _, line := range f.Diff {
			fmt.Fprintf(&out, "|    %s\n", r.text(line))
		}
	}
	for _, path := range one.Updated {
		fmt.Fprintf(&out, "|  updated %s\n", termtext.Line(path))
	}
	return out.String()
}

// inRoot returns a path relative to the root if it is below it.
func (r *Report) inRoot(path string) string {
	if full, err := filepath.Abs(path); err == nil && r.Root != "" {
		if within, err := filepath.Rel(r.Root, full); err == nil && filepath.IsLocal(within) {
			path = within
		}
	}
	return filepath.ToSlash(path)
}

// maxText is the longest text of a report, in bytes.
const maxText = 64 << 10

// text returns untrusted text as one line without secrets.
func (r *Report) text(s string) string {
	if r.Clean != nil {
		s = r.Clean(s)
	}
	return termtext.Line(termtext.Truncate(s, maxText))
}

// entry is the JSON of a result.
type entry struct {
	Path     string          `json:"path"`
	Line     int             `json:"line,omitempty"`
	Name     string          `json:"name"`
	Server   string          `json:"server,omitempty"`
	State    savedcall.State `json:"state"`
	TookMS   float64         `json:"tookMs,omitempty"`
	Failures []failure       `json:"failures,omitempty"`
	Updated  []string        `json:"updated,omitempty"`
}

type failure struct {
	Check savedcall.CheckKind `json:"check,omitempty"`
	Line  int                 `json:"line,omitempty"`
	Text  string              `json:"text"`
	Got   string              `json:"got,omitempty"`
	Diff  []string            `json:"diff,omitempty"`
}

// JSON returns a value whose JSON describes a result.
func (r *Report) JSON(one *savedcall.Result) any {
	e := entry{
		Path: one.Call.Path, Line: one.Call.Line, Name: one.Call.Name, Server: one.Server, State: one.State,
		TookMS: float64(one.Answer.Time.Microseconds()) / 1000, Updated: one.Updated,
	}
	for _, f := range one.Failures() {
		out := failure{Check: f.Check, Line: f.Line, Text: r.text(f.Text), Got: r.text(f.Got)}
		for _, line := range f.Diff {
			out.Diff = append(out.Diff, r.text(line))
		}
		e.Failures = append(e.Failures, out)
	}
	return e
}

// describe returns all failures of a result as text, one per line.
func (r *Report) describe(one *savedcall.Result) string {
	var out strings.Builder
	for _, f := range one.Failures() {
		fmt.Fprintf(&out, "%s: %s\n", f.Place(), r.text(f.String()))
		for _, line := range f.Diff {
			fmt.Fprintf(&out, "  %s\n", r.text(line))
		}
	}
	return out.String()
}

// headline returns the first failure, with the number of the others.
func (r *Report) headline(one *savedcall.Result) (text, check string) {
	all := one.Failures()
	if len(all) == 0 {
		return "", ""
	}
	text = r.text(all[0].String())
	if len(all) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	return text, cmp.Or(string(all[0].Check), "problem")
}
