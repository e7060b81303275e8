package saved

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/savedcall"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// Limits of the results in memory.
const (
	maxPerCall = 12
	maxBytes   = 32 << 20
)

// listInterval is the least time between two lists of the rows during a run.
const listInterval = 500 * time.Millisecond

// run is a run of several calls. The UI's key for running calls cancels it.
type run struct {
	*uicontext.Running
	names   []string
	title   string
	waiting map[string]bool
	done    int
	counts  map[savedcall.State]int
	first   string // first failure
}

// result is the result of one run of a call.
type result struct {
	savedcall.Result
	at       time.Time
	accepted bool
}

func (r *result) answered() bool { return r.Answer.Result != nil || r.Answer.Error != nil }

// onlyChanged reports whether all failed checks are about the stored answer or definition.
func (r *result) onlyChanged() bool {
	changed := false
	for i := range r.Outcomes {
		switch o := &r.Outcomes[i]; {
		case o.OK:
		case o.Check.Kind == savedcall.CheckSame || o.Check.Kind == savedcall.CheckDefinition:
			changed = true
		default:
			return false
		}
	}
	return changed && r.Problem == ""
}

func (r *result) size() int { return len(r.Answer.Result) + len(r.Answer.Stored) + 1024 }

// results are the last results by file.
type results struct {
	all   []*result // oldest first
	byKey map[string][]*result
	bytes int
}

func (s *results) last(name string) *result {
	of := s.byKey[name]
	if len(of) == 0 {
		return nil
	}
	return of[len(of)-1]
}

func (s *results) add(name string, r *result) {
	if s.byKey == nil {
		s.byKey = map[string][]*result{}
	}
	s.all, s.byKey[name] = append(s.all, r), append(s.byKey[name], r)
	s.bytes += r.size()
	if of := s.byKey[name]; len(of) > maxPerCall {
		s.drop(of[0])
	}
	for s.bytes > maxBytes && len(s.all) > 1 {
		s.drop(s.all[0])
	}
}

func (s *results) drop(r *result) {
	same := func(o *result) bool { return o == r }
	s.all = slices.DeleteFunc(s.all, same)
	for name, of := range s.byKey {
		if slices.Contains(of, r) {
			s.byKey[name] = slices.DeleteFunc(of, same)
		}
	}
	s.bytes -= r.size()
}

// rename moves the results of a file to its new name.
func (s *results) rename(from, to string) {
	if of, ok := s.byKey[from]; ok {
		s.byKey[to] = of
		delete(s.byKey, from)
	}
}

func (p *Pane) isRunning(name string) bool { return p.run != nil && p.run.waiting[name] }

// start runs calls. It asks first if tools declare themselves destructive.
func (p *Pane) start(names []string, title string) tea.Cmd {
	a := p.app
	switch {
	case a.ReadOnly != "":
		return a.Complain("%s; no requests are sent", a.ReadOnly)
	case p.run != nil:
		return a.Complain("calls are already running; %s cancels them", a.KeyOf("cancel"))
	}
	var risky []string
	for _, name := range names {
		if !p.trusted[name] && p.isDestructive(name) {
			risky = append(risky, name)
		}
	}
	begin := func() tea.Cmd { return p.begin(names, title) }
	if len(risky) == 0 {
		return begin()
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: "Run " + uicontext.SanitizeLine(title) + "?",
		Text: []string{"These calls may delete or overwrite data:"}, Body: strings.Join(risky, "\n"),
		Yes: "run", Then: begin, Always: "run, and don't ask again", ThenAlways: func() tea.Cmd {
			for _, name := range risky {
				p.trusted[name] = true
			}
			return begin()
		},
	})
}

func (p *Pane) isDestructive(name string) bool {
	f := p.find(name)
	if f == nil || f.Call == nil || f.Call.Kind != savedcall.KindCall {
		return false
	}
	t, _ := p.target(f.Call)
	if t.Entry == nil {
		return false
	}
	h := dialog.ToolHints(t.Entry)
	return h.Destructive != nil && *h.Destructive && (h.ReadOnly == nil || !*h.ReadOnly)
}

func (p *Pane) find(name string) *savedcall.File {
	i := slices.IndexFunc(p.folder.Files, func(f savedcall.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &p.folder.Files[i]
}

func (p *Pane) begin(names []string, title string) tea.Cmd {
	a := p.app
	ctx, cancel := context.WithCancel(a.Ctx)
	one := &run{names: names, title: title, waiting: map[string]bool{}, counts: map[savedcall.State]int{}}
	one.Running = &uicontext.Running{Request: uicontext.Request{Item: uicontext.Item{Name: "saved calls", Listed: uicontext.SanitizeLine(title)}, Show: len(names) == 1}, Started: a.Now(), Cancel: cancel}
	for _, name := range names {
		one.waiting[name] = true
	}
	p.run = one
	a.Calls.Running = append(a.Calls.Running, one.Running)
	results := make(chan savedcall.Result, len(names)) // so that the run never waits for the UI
	backend, set, captures := a.Backend, maps.Clone(p.set), p.captures(names)
	var failure error // before results is closed
	send := func() tea.Msg {
		defer cancel()
		defer close(results)
		failure = backend.RunSaved(ctx, names, set, captures, func(r savedcall.Result) { results <- r })
		return nil
	}
	return tea.Batch(p.list(), send, p.receive(one, results, &failure), a.Shell.RequestStarted(one.Request))
}

// receive takes results until the run ends.
func (p *Pane) receive(one *run, results <-chan savedcall.Result, failure *error) tea.Cmd {
	return func() tea.Msg {
		r, ok := <-results
		if !ok {
			return keys.FuncMsg(func() tea.Cmd { return p.ended(one, *failure) })
		}
		all := []savedcall.Result{r}
		for len(results) > 0 {
			all = append(all, <-results)
		}
		return keys.FuncMsg(func() tea.Cmd {
			for i := range all {
				p.add(one, &all[i])
			}
			next := p.receive(one, results, failure)
			if p.app.Clock().Sub(p.listed) < listInterval {
				return next
			}
			return tea.Batch(p.list(), next)
		})
	}
}

func (p *Pane) add(one *run, r *savedcall.Result) {
	name := strings.ReplaceAll(p.relative(r.Call.Path), `\`, "/")
	delete(one.waiting, name)
	one.done++
	one.counts[r.State]++
	if failures := r.Failures(); one.first == "" && r.State == savedcall.Failed && len(failures) > 0 {
		one.first = nameOf(name) + ": " + uicontext.SanitizeLine(failures[0].String())
	}
	p.results.add(name, &result{Result: *r, at: p.app.Now()})
}

// ended reports the outcome of a run. err is the cause of its early end.
func (p *Pane) ended(one *run, err error) tea.Cmd {
	a := p.app
	p.run = nil
	a.Calls.Running = slices.DeleteFunc(a.Calls.Running, func(r *uicontext.Running) bool { return r == one.Running })
	text := fmt.Sprintf("Ran %s: %d passed", uicontext.SanitizeLine(one.title), one.counts[savedcall.Passed])
	for _, state := range []savedcall.State{savedcall.Failed, savedcall.Skipped} {
		if n := one.counts[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	switch {
	case err != nil && one.done == 0:
		a.Complain("not run: %s", p.relative(uicontext.SanitizeLine(err.Error())))
	case one.first != "":
		a.Complain("%s (%s)", text, one.first)
	default:
		a.Say("%s", text)
	}
	return p.list()
}

// captures returns the values that earlier files of the folder captured in their last
// runs, unless these files run again.
func (p *Pane) captures(names []string) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	folder := folderOf(names[0])
	for i := range p.folder.Files {
		name := p.folder.Files[i].Name
		if folderOf(name) != folder || slices.Contains(names, name) {
			continue
		}
		if last := p.results.last(name); last != nil {
			maps.Copy(found, last.Captured)
		}
	}
	return found
}

func (p *Pane) whyNotAccept(f *savedcall.File) string {
	switch last := p.results.last(f.Name); {
	case f.Call == nil:
		return "the file has mistakes"
	case last == nil || !last.answered():
		return "no answer yet; " + p.app.KeyOf("open") + " runs the call"
	case last.accepted:
		return "the answer is already stored"
	}
	return ""
}

// accept stores the last answer and definition as the expected ones.
func (p *Pane) accept(f *savedcall.File) tea.Cmd {
	a, last := p.app, p.results.last(f.Name)
	call := *f.Call
	call.Expect = slices.Clone(call.Expect)
	same, edited := false, false
	for i := range call.Expect {
		switch c := &call.Expect[i]; {
		case c.Kind == savedcall.CheckSame:
			same = true
		case c.Kind == savedcall.CheckDefinition && len(last.Answer.Definition) > 0:
			digest := savedcall.Digest(last.Answer.Definition)
			edited = edited || digest != c.Definition
			c.Definition = digest
		}
	}
	store := func() tea.Cmd {
		backend, answer := a.Backend, last.Answer.StoredDocument()
		return a.Do(func() error {
			if edited {
				if _, err := backend.SaveCall(f.Name, &call, true); err != nil {
					return err
				}
			}
			return backend.StoreAnswer(f.Name, answer)
		}, "accept", func() tea.Cmd {
			p.accepted(last)
			return tea.Batch(p.Refresh(allFiles), a.Say("Stored the answer of %s", uicontext.SanitizeLine(f.Name)))
		})
	}
	if same {
		return store()
	}
	call.Expect, edited = append(call.Expect, savedcall.Check{Kind: savedcall.CheckSame}), true
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: "Store the answer?", Yes: "store", Then: store,
		Text: []string{"The call then expects the same answer:", "adds {same: true} to its checks."},
	})
}

// accepted marks the checks of a stored answer as passed.
func (p *Pane) accepted(r *result) {
	r.accepted = true
	r.Outcomes = slices.Clone(r.Outcomes)
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.Check.Kind == savedcall.CheckSame || o.Check.Kind == savedcall.CheckDefinition {
			o.OK, o.Got, o.Diff = true, "", nil
		}
	}
	r.Answer.Stored = r.Answer.StoredDocument()
	if len(r.Failures()) == 0 {
		r.State = savedcall.Passed
	}
}
