package saved

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/savedcall"
	"goblin/registry/termtext"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Subject is shown by the detail.
func (p *Pane) Subject() pane.Subject {
	r, ok := p.table.Selected()
	switch {
	case !ok:
		return pane.Subject{}
	case r.file == nil:
		return p.folderSubject(r)
	}
	f, last := r.file, p.results.last(r.file.Name)
	version := fmt.Sprintf("%p %p %d %s %s %t", f, last, len(p.results.byKey[f.Name]), p.stateOf(f), r.gone, last != nil && last.accepted)
	texts, history := p.fileTexts(r, last), historyText(p.app.Theme, p.results.byKey[f.Name])
	return pane.Subject{Key: "saved " + f.Name, Version: version, Title: nameOf(f.Name), Blocks: func(context.Context) []viewer.Section {
		out := append(texts, fileSections(f, last)...)
		if history != "" {
			out = append(out, viewer.Section{Title: "History", Kind: viewer.Text, Text: history})
		}
		return out
	}}
}

func (p *Pane) folderSubject(r row) pane.Subject {
	passed, failed := []string{}, []string{}
	_, names := p.names()
	for _, name := range names {
		switch last := p.results.last(name); {
		case last == nil:
		case last.State == savedcall.Passed:
			passed = append(passed, name)
		case last.State == savedcall.Failed:
			failed = append(failed, name)
		}
	}
	facts := []viewer.Field{
		{Label: "files", Value: uicontext.FormatInt(r.calls)},
		{Label: "passed", Value: uicontext.FormatInt(len(passed))},
		{Label: "failed", Value: uicontext.FormatInt(len(failed))},
	}
	note := fmt.Sprintf("%s runs them in the order of their names. Captured values are variables of later files.", p.app.KeyOf("run-folder"))
	return pane.Subject{Key: "saved " + r.folder, Version: fmt.Sprint(r.calls, passed, failed), Title: r.folder, Blocks: func(context.Context) []viewer.Section {
		out := []viewer.Section{{Kind: viewer.Fields, Fields: facts}, {Kind: viewer.Note, Text: note}}
		if len(failed) > 0 {
			out = append(out, viewer.Section{Title: "Failed", Kind: viewer.Text, Text: strings.Join(failed, "\n")})
		}
		return out
	}}
}

// fileTexts returns the facts of a file, its problems and the outcomes of its checks.
func (p *Pane) fileTexts(r row, last *result) []viewer.Section {
	f, a := r.file, p.app
	if f.Call == nil {
		return []viewer.Section{
			{Kind: viewer.Error, Text: p.relative(f.Mistakes)},
			{Kind: viewer.Note, Text: a.KeyOf("editor") + " opens the file at the first mistake."},
		}
	}
	c := f.Call
	label := map[savedcall.Kind]string{savedcall.KindCall: "tool", savedcall.KindRead: "resource", savedcall.KindPrompt: "prompt"}[c.Kind]
	facts := []viewer.Field{{Label: label, Value: c.Name}}
	add := func(label, value string) {
		if value != "" {
			facts = append(facts, viewer.Field{Label: label, Value: value})
		}
	}
	add("server", r.server)
	add("about", c.Description)
	if c.Dev {
		add("dev", "goblin dev runs it after each build")
	}
	if last != nil {
		add("last run", lastRun(last))
	}
	out := []viewer.Section{{Kind: viewer.Fields, Fields: facts}}
	if r.gone != "" {
		out = append(out, viewer.Section{Kind: viewer.Error, Text: r.gone})
	}
	if last != nil && last.Problem != "" {
		out = append(out, viewer.Section{Kind: viewer.Error, Text: p.relative(last.Problem)})
		if strings.Contains(last.Problem, "${") || strings.Contains(last.Problem, "variable") {
			out = append(out, viewer.Section{Kind: viewer.Note, Text: a.KeyOf("variables") + " sets variables for this UI."})
		}
	}
	if text := checksText(a.Theme, c, last); text != "" {
		out = append(out, viewer.Section{Title: "Checks", Kind: viewer.Text, Text: text})
	}
	if last != nil && last.State == savedcall.Failed && last.onlyChanged() {
		out = append(out, viewer.Section{Kind: viewer.Note, Text: fmt.Sprintf("%s compares the answers, %s accepts the new one.", a.KeyOf("compare"), a.KeyOf("approve"))})
	}
	return out
}

func lastRun(r *result) string {
	state := string(r.State)
	if r.accepted {
		state += ", then accepted"
	}
	text := r.at.Format("15:04:05") + "  " + state
	if r.answered() {
		text += "  " + uicontext.FormatDuration(r.Answer.Time) + "  " + uicontext.FormatSize(int64(len(cmp.Or(string(r.Answer.Result), string(r.Answer.Error)))))
	}
	return text
}

// checksText describes the checks, with their outcomes after a run.
func checksText(lk *theme.Theme, c *savedcall.Call, last *result) string {
	var b strings.Builder
	if last == nil || len(last.Outcomes) == 0 {
		for i := range c.Expect {
			fmt.Fprintf(&b, "%s %s\n", lk.Sep, c.Expect[i].String())
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	for i := range last.Outcomes {
		o := &last.Outcomes[i]
		if o.OK {
			fmt.Fprintf(&b, "%s %s\n", passMark(lk), o.Text)
			continue
		}
		fmt.Fprintf(&b, "%s %s", failMark(lk), o.Text)
		if o.Got != "" {
			fmt.Fprintf(&b, "\n    %s", o.Got)
		}
		b.WriteByte('\n')
		for _, line := range o.Diff {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// historyText lists the runs of a call in this UI, the newest first.
func historyText(lk *theme.Theme, all []*result) string {
	var b strings.Builder
	for _, r := range slices.Backward(all) {
		mark := map[savedcall.State]string{savedcall.Passed: passMark(lk), savedcall.Failed: failMark(lk)}[r.State]
		fmt.Fprintf(&b, "%s %s\n", cmp.Or(mark, " "), lastRun(r))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fileSections returns the request and the answer of a call.
func fileSections(f *savedcall.File, last *result) []viewer.Section {
	c := f.Call
	if c == nil {
		return nil
	}
	var out []viewer.Section
	if c.Arguments != nil {
		out = append(out, viewer.Section{Title: "Request", Kind: viewer.JSON, Data: c.Arguments})
	}
	if len(c.Capture) > 0 {
		out = append(out, viewer.Section{Title: "Captures", Kind: viewer.Fields, Fields: captureFields(c, last)})
	}
	if last == nil || !last.answered() {
		return out
	}
	out = append(out, viewer.Section{Title: "Answer", Kind: viewer.Note, Text: lastRun(last)})
	if last.Answer.Error != nil {
		return append(out, viewer.Section{Kind: viewer.JSON, Data: last.Answer.Error})
	}
	from := map[savedcall.Kind]func(json.RawMessage) []viewer.Section{
		savedcall.KindCall: viewer.FromTool, savedcall.KindRead: viewer.FromResource, savedcall.KindPrompt: viewer.FromPrompt,
	}
	return append(out, from[c.Kind](last.Answer.Result)...)
}

func captureFields(c *savedcall.Call, last *result) (fields []viewer.Field) {
	for _, one := range c.Capture {
		value := one.Path
		if last != nil && last.Captured[one.Name] != nil {
			value += "  =  " + termtext.Truncate(string(last.Captured[one.Name]), 200)
		}
		fields = append(fields, viewer.Field{Label: one.Name, Value: value})
	}
	return fields
}
