// Package saved is the pane of saved calls: it lists, runs, edits and compares them.
//
// It reads the folder in a command while it is open, and when files change. Results of runs
// are kept in memory, at most 12 per call and 32 MiB in total. All methods must run on the
// UI's Update goroutine. Texts of files and answers are untrusted.
package saved

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/savedcall"
	"goblin/tui/compare"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Pane is the pane of saved calls.
type Pane struct {
	app     *pane.Layout
	table   *list.Table[row]
	marks   *compare.Marks
	folder  savedcall.Folder // as last read
	read    bool             // the folder was read
	failure string           // why it could not be read
	reading bool             // a command reads it
	stale   bool             // … and it has changed since
	folded  map[string]bool  // folders

	run      *run // or nil
	results  results
	set      map[string]string // variables of this UI
	trusted  map[string]bool   // files whose destructive tool runs without asking
	last     string            // folder of the last saved call, with a slash, or ""
	selected string            // row to select once it is listed
	listed   time.Time         // when the rows were listed last, during a run
}

// row is a folder or a file. Commands read it, so it never changes.
type row struct {
	folder string // with a slash, if the row is a folder
	file   *savedcall.File
	name   string // without the suffix
	tool   string
	server string
	gone   string // why the target is missing, or ""
	state  string // of the last run, see stateOf
	took   time.Duration
	calls  int // of a folder
}

func (r row) key() string {
	if r.file == nil {
		return r.folder
	}
	return r.file.Name
}

// States of rows, as the filter names them.
const (
	stateNever   = "never"
	stateRunning = "running"
	stateInvalid = "invalid" // the file has mistakes
	stateChanged = "changed" // only the answer or the definition differs
)

// New returns the pane and sets [uicontext.Context.SaveCall].
func New(a *pane.Layout) *Pane {
	p := &Pane{app: a, marks: compare.NewMarks(a.Context), folded: map[string]bool{}, set: map[string]string{}, trusted: map[string]bool{}}
	p.table = list.New(a.Ctx, a.Now, row.key, func(r row) string { return r.key() + "\x00" + r.tool }, fields, list.NewOrder[row]("files", nil))
	p.table.SetColumns(p.columns()...)
	p.table.Base = p.style
	p.table.Hidden = func() func(row, bool) bool {
		folded := make([]string, 0, len(p.folded))
		for folder := range p.folded {
			folded = append(folded, folder)
		}
		return func(r row, filtered bool) bool {
			for _, folder := range folded {
				if !filtered && strings.HasPrefix(r.key(), folder) && r.key() != folder {
					return true
				}
			}
			return false
		}
	}
	a.SaveCall = p.saveRequest
	return p
}

func fields(rows []row) []list.Field {
	text := func(name, help string, value func(*row) string) list.Field {
		return list.Field{Name: name, Kind: list.Text, Help: help, Text: func(i int) string { return value(&rows[i]) }}
	}
	return []list.Field{
		text("folder", "the folder, such as orders", func(r *row) string { return strings.TrimSuffix(folderOf(r.key()), "/") }),
		text("name", "the file's name", func(r *row) string { return path.Base(r.key()) }),
		text("tool", "tool, prompt or URI", func(r *row) string { return r.tool }),
		text("server", "the server", func(r *row) string { return r.server }),
		text("result", "passed, failed, changed, skipped, running, invalid or never", func(r *row) string { return r.state }),
	}
}

// folderOf returns the folder of a file with a slash, or "". A folder is in itself.
func folderOf(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// Place returns the pane's place for keys.
func (p *Pane) Place() keymap.Place { return keymap.InSaved }

// Tab returns the name and the number of calls that failed last.
func (p *Pane) Tab() (name, count string) {
	if _, failed := p.counts(); failed > 0 {
		count = p.app.Theme.Failed + uicontext.FormatCount(failed)
	}
	return "Saved", count
}

// counts returns the number of files whose last run passed or failed.
func (p *Pane) counts() (passed, failed int) {
	for i := range p.folder.Files {
		switch r := p.results.last(p.folder.Files[i].Name); {
		case r == nil:
		case r.State == savedcall.Passed:
			passed++
		case r.State == savedcall.Failed:
			failed++
		}
	}
	return passed, failed
}

// Watches returns changes of files and of targets.
func (p *Pane) Watches() registry.Changes {
	return registry.SavedCalls | registry.Servers | registry.Tools | registry.Prompts | registry.Resources
}

// Refresh reads the folder if files may have changed, and otherwise marks missing targets.
func (p *Pane) Refresh(what registry.Changes) tea.Cmd {
	switch {
	case p.app.Open != pane.PaneSaved:
		return nil
	case what&registry.SavedCalls == 0:
		return p.list()
	case p.reading:
		p.stale = true
		return nil
	}
	p.reading, p.stale = true, false
	backend := p.app.Backend
	return func() tea.Msg {
		folder, err := backend.SavedCalls()
		return keys.FuncMsg(func() tea.Cmd { return p.take(folder, err) })
	}
}

func (p *Pane) take(folder *savedcall.Folder, err error) tea.Cmd {
	p.reading, p.read, p.failure = false, true, ""
	if err != nil {
		p.failure = err.Error()
	} else {
		if folder.Problem != "" && folder.Problem != p.folder.Problem {
			p.app.Complain("Saved calls are missing: %s", uicontext.SanitizeLine(folder.Problem))
		}
		p.folder = *folder
	}
	cmd := p.list()
	if p.stale {
		cmd = tea.Batch(cmd, p.Refresh(registry.SavedCalls))
	}
	return cmd
}

// list lists the files again, with their results and targets.
func (p *Pane) list() tea.Cmd {
	var rows []row
	heads := map[string]int{}
	p.listed = p.app.Clock()
	for i := range p.folder.Files {
		f := &p.folder.Files[i]
		folder := folderOf(f.Name)
		for at := 0; ; { // also folders that only have folders
			next := strings.IndexByte(folder[at:], '/')
			if next < 0 {
				break
			}
			at += next + 1
			head, known := heads[folder[:at]]
			if !known {
				head = len(rows)
				heads[folder[:at]] = head
				rows = append(rows, row{folder: folder[:at], name: path.Base(folder[:at])})
			}
			rows[head].calls++
		}
		rows = append(rows, p.rowOf(f))
	}
	cmd := p.table.Refresh(len(rows), func() []row { return rows }, func() tea.Cmd { return nil })
	if p.selected != "" {
		p.table.Find(p.selected)
		p.selected = ""
	}
	return cmd
}

func (p *Pane) rowOf(f *savedcall.File) row {
	r := row{file: f, name: strings.TrimSuffix(path.Base(f.Name), path.Ext(f.Name)), state: p.stateOf(f)}
	if last := p.results.last(f.Name); last != nil {
		r.took = last.Answer.Time
	}
	if f.Call == nil {
		return r
	}
	r.tool = f.Call.Name
	t, why := p.target(f.Call)
	r.server, r.gone = t.Server, why
	return r
}

// stateOf returns the state of a file's last run.
func (p *Pane) stateOf(f *savedcall.File) string {
	last := p.results.last(f.Name)
	switch {
	case p.isRunning(f.Name):
		return stateRunning
	case f.Call == nil:
		return stateInvalid
	case last == nil:
		return stateNever
	case last.State == savedcall.Failed && last.onlyChanged():
		return stateChanged
	}
	return string(last.State)
}

// target returns the entry that a call means, or explains why there is none. A name with
// variables is unknown before the call runs.
func (p *Pane) target(c *savedcall.Call) (t registry.Target, why string) {
	if strings.Contains(c.Name, "${") {
		return t, ""
	}
	var err error
	switch c.Kind {
	case savedcall.KindCall:
		t, err = p.app.Reg.ResolveTool(c.Name)
	case savedcall.KindPrompt:
		t, err = p.app.Reg.ResolvePrompt(c.Name)
	case savedcall.KindRead:
		t, err = p.app.Reg.ResolveResource(c.Name)
	}
	if err == nil || p.starting() {
		return t, ""
	}
	return t, uicontext.SanitizeLine(err.Error())
}

// starting reports whether a server has not listed its entries yet.
func (p *Pane) starting() bool {
	for _, s := range p.app.Reg.States() {
		if s.State == registry.StateConnecting && !s.Listed {
			return true
		}
	}
	return false
}

// Heading is drawn in the border.
func (p *Pane) Heading() (title, right string) {
	count := uicontext.FormatInt(len(p.folder.Files))
	if p.table.FilterText != "" {
		count = uicontext.FormatInt(p.table.Len()) + "/" + count
	}
	lk := p.app.Theme
	var parts []string
	if order := p.table.OrderText(lk); order != "" {
		parts = append(parts, order)
	}
	if p.run != nil {
		parts = append(parts, fmt.Sprintf("%s %d of %d", p.app.Spin.View(), p.run.done, len(p.run.names)))
	} else if passed, failed := p.counts(); passed+failed > 0 {
		parts = append(parts, lk.Good.On(fmt.Sprintf("%d %s", passed, passMark(lk))), lk.Bad.On(fmt.Sprintf("%d %s", failed, failMark(lk))))
	}
	return lk.Title.On("Saved") + " " + count, strings.Join(parts, " ")
}

func passMark(lk *theme.Theme) string {
	if lk.ASCII {
		return "+"
	}
	return lk.Check
}

func failMark(lk *theme.Theme) string {
	if lk.ASCII {
		return "x"
	}
	return "✗"
}

// Lines draws the list.
func (p *Pane) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	return p.table.Grid(lk, w, h, focused)
}

// Rows returns the list.
func (p *Pane) Rows() list.Rows { return below{p.table} }

// below counts the line of the column names.
type below struct{ *list.Table[row] }

func (b below) Position() int { return b.Table.Position() + 1 }

// Click selects a row, or sorts.
func (p *Pane) Click(x, y int) (bool, tea.Cmd) { return p.table.Click(x, y) }

// Wheel scrolls the list.
func (p *Pane) Wheel(_, _, by int) { p.table.Scroll(by) }

// Empty explains how to save calls.
func (p *Pane) Empty() []string {
	a := p.app
	switch {
	case p.failure != "":
		return []string{"The folder cannot be read: " + uicontext.SanitizeLine(p.failure)}
	case !p.read:
		return nil
	}
	save := a.KeyOf("save-call")
	return []string{
		"No saved calls yet.",
		save + " saves a call: in its form, in Traffic, in Time line,",
		"or in past calls (" + a.KeyOf("past") + "). " + a.KeyOf("new-call") + " creates one.",
		"",
		"One YAML file each, made for git, in",
		uicontext.SanitizeLine(a.Theme.Cut(p.folder.Path, 70)),
	}
}

// Item returns the target of the call under the cursor, or the run, which can be cancelled.
func (p *Pane) Item() uicontext.Item {
	if p.run != nil {
		return p.run.Item
	}
	r, ok := p.table.Selected()
	if !ok || r.file == nil || r.file.Call == nil {
		return uicontext.Item{}
	}
	t, _ := p.target(r.file.Call)
	if t.Entry == nil {
		return uicontext.Item{}
	}
	return uicontext.EntryItem(t.Entry)
}

// ShownContent returns the last answer of the call under the cursor, or the call.
func (p *Pane) ShownContent() uicontext.CachedContent {
	r, ok := p.table.Selected()
	if !ok || r.file == nil || r.file.Call == nil {
		return uicontext.CachedContent{}
	}
	if last := p.results.last(r.file.Name); last != nil && last.answered() {
		return uicontext.CachedContent{Name: r.name + ".answer.json", Data: last.Answer.Document()}
	}
	return uicontext.CachedContent{Name: r.name + ".yaml", Data: r.file.Call.Format()}
}

// relative returns a text with paths below the folder instead of absolute ones.
func (p *Pane) relative(text string) string {
	return strings.ReplaceAll(text, p.folder.Path+string(filepath.Separator), "")
}

// current returns the file under the cursor, or nil.
func (p *Pane) current() *savedcall.File {
	r, _ := p.table.Selected()
	return r.file
}

// names returns the files of the folder under the cursor, or of the file's folder.
func (p *Pane) names() (folder string, names []string) {
	r, ok := p.table.Selected()
	if !ok {
		return "", nil
	}
	folder = folderOf(r.key())
	for i := range p.folder.Files {
		if f := &p.folder.Files[i]; strings.HasPrefix(f.Name, folder) && f.Call != nil {
			names = append(names, f.Name)
		}
	}
	return folder, names
}

// Keys returns the bindings of the pane's own actions, and of saving calls.
func Keys(of func() *Pane) keys.Table {
	return keys.Table{
		{ID: "run-folder", Hint: "run folder", Long: "Run the saved calls of the folder", Names: []string{"run"}, SearchWords: "test all checks"},
		{ID: "variables", Hint: "variables", Long: "Set variables of saved calls for this UI", Names: []string{"variables"}, SearchWords: "environment secrets values"},
		{ID: "new-call", Long: "Create a saved call", Names: []string{"new-call"}, SearchWords: "add file"},
		{ID: "rename", Long: "Rename or move the saved call", Names: []string{"rename"}, SearchWords: "move folder name"},
		{ID: "duplicate", Long: "Copy the saved call", Names: []string{"duplicate"}, SearchWords: "copy clone"},
		{ID: "save-call", Hint: "save call", Long: "Save the call as a file (also in forms)", Names: []string{"save-call"}, SearchWords: "keep test checks yaml", WhyDisabled: func() string { return of().whyNotSave() }, Run: func() tea.Cmd { return of().saveShown() }},
	}
}

// Handlers returns the pane's actions.
func (p *Pane) Handlers() map[string]keys.Handler {
	a := p.app
	why := func(need func(f *savedcall.File) string) func() string {
		return func() string {
			f := p.current()
			switch {
			case p.table.Len() == 0:
				return "no row selected"
			case f == nil:
				return "select a call, not a folder"
			case need != nil:
				return need(f)
			}
			return ""
		}
	}
	valid := func(f *savedcall.File) string {
		if f.Call == nil {
			return "the file has mistakes; " + a.KeyOf("editor") + " edits it"
		}
		return ""
	}
	with := func(do func(f *savedcall.File) tea.Cmd) func() tea.Cmd {
		return func() tea.Cmd { return do(p.current()) }
	}
	return map[string]keys.Handler{
		"open":         {Run: p.enter, Label: p.enterLabel},
		"run-folder":   {WhyDisabled: p.whyNotRunFolder, Run: p.runFolder},
		"call":         {WhyDisabled: why(valid), Run: with(p.edit), Label: func() string { return "edit" }},
		"editor":       {WhyDisabled: why(nil), Run: with(p.editText)},
		"rename":       {WhyDisabled: why(nil), Run: with(func(f *savedcall.File) tea.Cmd { return p.move(f.Name, nameOf(f.Name), false) })},
		"duplicate":    {WhyDisabled: why(nil), Run: with(func(f *savedcall.File) tea.Cmd { return p.move(f.Name, nameOf(f.Name)+"-2", true) })},
		"remove":       {WhyDisabled: why(nil), Run: with(p.remove)},
		"variables":    {Run: p.variables},
		"new-call":     {Run: func() tea.Cmd { return p.create(p.Item().Listed) }},
		"compare":      {WhyDisabled: why(p.whyNotCompare), Run: with(p.compare)},
		"approve":      {WhyDisabled: why(p.whyNotAccept), Run: with(p.accept), Label: func() string { return "accept answer" }},
		"reload":       {Run: func() tea.Cmd { return p.Refresh(registry.SavedCalls) }, Label: func() string { return "read files" }},
		"copy":         {WhyDisabled: why(nil), Run: with(func(f *savedcall.File) tea.Cmd { return a.Copy(uicontext.SanitizeLine(p.path(f)), "the path") })},
		"copy-content": {WhyDisabled: why(valid), Run: with(p.copyAs)},
		"subscribe":    {WhyDisabled: keys.AlwaysDisabled("only resources can be subscribed to")},
	}
}

// nameOf returns a name without its suffix.
func nameOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

func (p *Pane) path(f *savedcall.File) string {
	return filepath.Join(p.folder.Path, filepath.FromSlash(f.Name))
}

// enter runs a call, folds a folder, or edits a file with mistakes.
func (p *Pane) enter() tea.Cmd {
	r, ok := p.table.Selected()
	switch {
	case !ok:
		return nil
	case r.file == nil:
		if p.folded[r.folder] = !p.folded[r.folder]; !p.folded[r.folder] {
			delete(p.folded, r.folder)
		}
		return p.table.Rerun()
	case r.file.Call == nil:
		return p.editText(r.file)
	}
	return p.start([]string{r.file.Name}, r.name)
}

func (p *Pane) enterLabel() string {
	switch r, ok := p.table.Selected(); {
	case ok && r.file == nil && p.folded[r.folder]:
		return "unfold"
	case ok && r.file == nil:
		return "fold"
	case ok && r.file.Call == nil:
		return "edit"
	}
	return "run"
}

func (p *Pane) whyNotRunFolder() string {
	if _, names := p.names(); len(names) == 0 {
		return "no calls to run here"
	}
	return ""
}

func (p *Pane) runFolder() tea.Cmd {
	folder, names := p.names()
	title, invalid := cmp.Or(strings.TrimSuffix(folder, "/"), "all calls"), 0
	for i := range p.folder.Files {
		if f := &p.folder.Files[i]; f.Call == nil && strings.HasPrefix(f.Name, folder) {
			invalid++
		}
	}
	if invalid > 0 {
		title += fmt.Sprintf(" without %d with mistakes", invalid)
	}
	return p.start(names, title)
}
