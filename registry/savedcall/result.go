package savedcall

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry/termtext"
)

// State is the state of a call after a run.
type State string

// The values of [State].
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped" // not sent
)

// Result is the result of one call of a run.
type Result struct {
	Call   *Call
	Server string // "" if unknown
	State  State
	Answer Answer
	// Outcomes has one element per check. It is empty without an answer.
	Outcomes []Outcome
	// Captured are the values that later files of the folder can use.
	Captured map[string]json.RawMessage
	// Problem explains a missing answer or capture. Each line may begin with a place, as in
	// the errors of [Call.Resolve].
	Problem string
	// Unreachable reports that the server or the gateway could not be reached.
	Unreachable bool
	// Updated are the files that the run changed.
	Updated []string
}

// Failure is one reason why a call failed.
type Failure struct {
	Check CheckKind // "" for a problem
	Path  string    // of the file
	Line  int       // 0 if unknown
	Text  string    // one line
	Got   string    // what the answer has instead; may be empty
	Diff  []string
}

// Place returns the path, with the line if it is known.
func (f *Failure) Place() string {
	if f.Line == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s:%d", f.Path, f.Line)
}

// String describes the failure in one line, without place and differences.
func (f *Failure) String() string {
	if f.Got == "" {
		return f.Text
	}
	return f.Text + ": " + f.Got
}

// Failures returns the reasons why the call failed or was skipped.
func (r *Result) Failures() (all []Failure) {
	if r.Problem != "" {
		for text := range strings.Lines(r.Problem) {
			all = append(all, r.problem(strings.TrimSpace(text)))
		}
	}
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; !o.OK {
			all = append(all, Failure{Check: o.Check.Kind, Path: r.Call.Path, Line: o.Check.Line, Text: o.Text, Got: o.Got, Diff: o.Diff})
		}
	}
	return all
}

// problem divides a line of a problem into its place and its text.
func (r *Result) problem(text string) Failure {
	f := Failure{Path: r.Call.Path, Line: r.Call.Line, Text: text}
	place, rest, ok := strings.Cut(text, ": ")
	digits, here := strings.CutPrefix(place, termtext.Line(r.Call.Path)+":")
	if line, err := strconv.Atoi(digits); ok && here && err == nil {
		f.Line, f.Text = line, rest
	}
	return f
}
