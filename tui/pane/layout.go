package pane

import (
	"path"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Desk has what lies on the screen: the panes, their detail panels, and which of
// them is seen. Panes reach each other through it.
type Desk struct {
	*uicontext.Common
	Panes   []Pane
	Acts    []map[string]keys.Act // of the panes
	Details []*detail
	Open    int          // index of the pane that is shown
	Inside  bool         // the detail panel has the focus
	Opened  bool         // the detail panel is open where it does not stand beside
	Touched bool         // the user has pressed something
	Used    map[int]bool // panes that the user has done something in
	since   time.Time
	Layout  layout
	Pulse   *Pulse
	Demo    bool     // the built-in demo
	Own     bool     // the config is the user's, not the demo
	Command []string // what clients start, for commands about the same config
	Wide    bool     // long lines are not wrapped
	zoomed  bool     // the detail panel has the whole body
	entered bool     // the zoom moved the focus there
	path    string   // that was typed last

	trail     []step // the jumps that brought the user here
	LastClick Click
	Shown     func()            // another pane is shown
	FilterSet func(text string) // the filter was not typed
	Intro     func() []viewer.Section
}

// Set puts the panes on the desk, and those that stand elsewhere; its common part is there.
func (a *Desk) Set(others ...Pane) {
	a.Panes = append([]Pane{newServers(a), newTools(a), newPrompts(a), newResources(a), newLogs(a)}, others...)
	for _, p := range a.Panes {
		a.Acts = append(a.Acts, p.Acts())
		a.Details = append(a.Details, newDetail(a))
	}
	a.Open, a.since, a.Used = PaneResources, a.Now(), map[int]bool{}
	if a.Own || len(a.Reg.States()) == 0 {
		a.Open = PaneServers
	}
}

// paneIDs are the bindings that show a pane, and use none.
var paneIDs = []string{"servers", "tools", "prompts", "resources", "logs", "usage"}

// Use does what a binding does, and notes where.
func (a *Desk) Use(id string, run func() tea.Cmd) tea.Cmd {
	open := a.Open
	cmd := run()
	if a.Open == open && !slices.Contains(paneIDs, id) {
		a.Used[open] = true
	}
	return cmd
}

// begins is how long servers that start may fail for the screen to show that first.
const begins = 30 * time.Second

// alert goes to the first server that failed, while the screen has just been opened and
// nobody has used it.
func (a *Desk) alert() {
	if a.Touched || a.Now().Sub(a.since) > begins {
		return
	}
	states := a.Reg.States()
	if i := slices.IndexFunc(states, func(s registry.ServerState) bool {
		return s.State == registry.StateFailed || s.State == registry.StateNeedsLogin
	}); i >= 0 {
		a.Open, a.Touched = PaneServers, true
		a.Panes[PaneServers].(*Servers).Table.Find(states[i].Name)
	}
}

// starting reports whether a server is on its way up.
func (a *Desk) starting() bool {
	return slices.ContainsFunc(a.Reg.States(), func(s registry.ServerState) bool {
		return s.State == registry.StateConnecting && !IsDown(s)
	})
}

// Follow brings the detail panel to what the cursor is on.
func (a *Desk) Follow() tea.Cmd {
	if !a.DetailShown() {
		return nil
	}
	g := a.Geometry()
	return a.Details[a.Open].show(a.Panes[a.Open].Subject(), g.Detail.W-2*g.Border)
}

// The panes, by index.
const (
	PaneServers = iota
	PaneTools
	PanePrompts
	PaneResources
	PaneLogs
	PaneUsage
)

// Where the detail panel is.
const (
	placeAuto = iota
	placeBeside
	placeBelow
	PlaceHidden
)

// NextPlace puts the detail panel elsewhere, and says where; what would look the same is
// left out.
func (a *Desk) NextPlace() string {
	was := a.Geometry()
	for range PlaceHidden {
		a.Layout.Place = (a.Layout.Place + 1) % (PlaceHidden + 1)
		a.Opened = a.Opened || a.Layout.Place == placeBelow
		if a.Geometry() != was {
			break
		}
	}
	return a.PlaceName()
}

// PlaceName says where the detail panel is.
func (a *Desk) PlaceName() string {
	return [...]string{"where there is room", "beside", "below", "hidden"}[a.Layout.Place]
}

// Zoom toggles whether the focused part fills the whole body.
func (a *Desk) Zoom() tea.Cmd {
	if a.Inside {
		a.zoomed, a.entered = !a.zoomed, false
		if a.zoomed {
			return a.Say("The detail panel has the whole body; %s shows the list again", a.KeyOf("widen"))
		}
		return nil
	}
	if a.Layout.Place == PlaceHidden {
		a.Layout.Place = a.Layout.Before
		return a.Say("Detail panel: %s", a.PlaceName())
	}
	a.Layout.Before, a.Layout.Place = a.Layout.Place, PlaceHidden
	return a.Say("The list has the whole width; %s shows the detail panel again", a.KeyOf("widen"))
}

// WhyNoField says that the list that is open has no such field.
func (a *Desk) WhyNoField(name string) func(string) string {
	return func(string) string {
		p := a.Panes[a.Open]
		if _, ok := list.FindTextField(p.Rows().Terms(), name); ok {
			return ""
		}
		of, _ := p.Tab()
		return "the filter of " + of + " has no field " + name
	}
}

// WhyNoOrder says that the list in sight has no order of a name.
func (a *Desk) WhyNoOrder(name string) string {
	all := a.Panes[a.Open].Rows().Orderings()
	if name == "" || slices.Contains(all, name) {
		return ""
	}
	return "there is no order by " + uicontext.Clean(name) + "; there are " + strings.Join(all, ", ")
}

// layout is the user's choice of it.
type layout struct {
	Place  int
	Before int // where it was before it was hidden
	Part   int // percent of the list
}

// DefaultLayout is the layout of a new screen.
func DefaultLayout() layout { return layout{Part: 55} }

// Geometry is where everything is. It follows from the size alone, so that
// drawing and clicking agree.
type Geometry struct {
	Small  bool
	Border int // 0 or 1
	body   uicontext.Rect
	List   uicontext.Rect
	Detail uicontext.Rect // h is 0 when it is not shown
	Third  uicontext.Rect
}

// Geometry follows from the size and what is open.
func (a *Desk) Geometry() Geometry {
	g := Geometry{Small: a.W < LeastWidth || a.H < LeastHeight, body: uicontext.Rect{X: 0, Y: 2, W: a.W, H: a.H - 4}}
	if a.H >= borderHeight {
		g.Border = 1
	}
	g.List = g.body
	if !a.detailWanted() {
		return g
	}
	if a.Zoomed() {
		g.Detail, g.List.H = g.body, 0
		return g
	}
	if a.Beside() {
		all := g.body.W
		if all >= thirdWidth {
			third := all * 25 / 100
			g.Third = uicontext.Rect{X: all - third, Y: g.body.Y, W: third, H: g.body.H}
			all -= third
		}
		w := all * a.Layout.Part / 100
		g.List.W = w
		g.Detail = uicontext.Rect{X: w, Y: g.body.Y, W: all - w, H: g.body.H}
		return g
	}
	if a.H < borderHeight { // there is room for one
		if a.Inside {
			g.Detail, g.List.H = g.body, 0
		}
		return g
	}
	h := max(5, g.body.H*(a.Layout.Part-5)/100)
	g.List.H = h
	g.Detail = uicontext.Rect{X: 0, Y: g.body.Y + h, W: g.body.W, H: g.body.H - h}
	return g
}

// Zoomed reports whether the detail panel has the whole body.
func (a *Desk) Zoomed() bool { return a.Inside && a.zoomed }

// Unzoom shows the list again and restores the focus. It returns false if the list is
// visible.
func (a *Desk) Unzoom() bool {
	was := a.Zoomed()
	if was {
		a.zoomed, a.Inside = false, !a.entered
	}
	return was
}

// Beside reports whether the detail panel stands beside the list.
func (a *Desk) Beside() bool {
	return a.Layout.Place == placeBeside || a.Layout.Place != placeBelow && a.W >= BesideWidth
}

func (a *Desk) detailWanted() bool {
	return a.Layout.Place != PlaceHidden && (a.Beside() || a.Opened) || a.Inside
}

// DetailShown reports whether the detail panel is in sight.
func (a *Desk) DetailShown() bool {
	g := a.Geometry()
	return g.Detail.H > 0 && g.Detail.W > 0
}

// ToDetail opens the detail panel and goes there.
func (a *Desk) ToDetail() tea.Cmd {
	a.Inside, a.Opened, a.zoomed = true, true, false
	return nil
}

// Enlarge makes a detail panel below a list fill the whole body.
func (a *Desk) Enlarge() tea.Cmd {
	if a.DetailShown() && !a.Beside() && !a.Zoomed() {
		a.zoomed, a.entered, a.Inside = true, !a.Inside, true
	}
	return nil
}

// openDetail opens the detail panel, and focuses it if beside is false or only one of both
// has room. An open panel below a list fills the whole body.
func (a *Desk) openDetail(beside bool) tea.Cmd {
	if beside && a.DetailShown() {
		a.Enlarge()
	}
	a.Opened = true
	if !beside || !a.DetailShown() {
		a.Inside = true
	}
	return nil
}

// follower is a pane that wants to know that its user moved the cursor.
type follower interface{ Moved() }

// Moved tells the pane in sight that its user moved the cursor.
func (a *Desk) Moved() {
	if p, ok := a.Panes[a.Open].(follower); ok {
		p.Moved()
	}
}

// Click remembers the last one, to know a double click.
type Click struct {
	X, Y int
	Time time.Time
}

// SetFilter filters the open pane by a text, as if it were typed.
func (a *Desk) SetFilter(text string) tea.Cmd {
	a.FilterSet(text)
	return a.Panes[a.Open].Rows().Filter(text)
}

// whyNoContent says that nothing of an item can be copied or saved, and what helps: its
// name on a file of something else would be a lie.
func (a *Desk) whyNoContent(it uicontext.Item, untried string) string {
	switch inv := uicontext.Kept(a.Reg, it); {
	case inv == nil:
		return "it " + untried
	case inv.Result == nil:
		return "there is only an error; " + a.KeyOf("reload") + " tries again"
	}
	return ""
}

// Content finds what copying, files, pagers and editors take: the content that is kept of
// the item; for the latter two, else what the pane shows.
func (a *Desk) Content() uicontext.Shown {
	if p, ok := a.Panes[a.Open].(interface{ Shown() uicontext.Shown }); ok {
		return p.Shown()
	}
	it := a.Panes[a.Open].Item()
	name := path.Base(strings.TrimRight(it.Name, "/"))
	if inv := uicontext.Kept(a.Reg, it); inv != nil && inv.Result != nil {
		if inv.Expanded != "" {
			name = path.Base(strings.TrimRight(inv.Expanded, "/"))
		}
		if file, _, data, ok := viewer.Blob(inv.Result); ok {
			if file != "" {
				name = path.Base(file)
			}
			return uicontext.Shown{Name: name, Data: data, Blob: true}
		}
		if text := viewer.TextOf(inv.Result); text != "" {
			return uicontext.Shown{Name: name, Data: []byte(text), Blob: false}
		}
		return uicontext.Shown{Name: name + ".json", Data: uicontext.Pretty(inv.Result), Blob: false}
	}
	// The panel may be closed or still at the row before, so its text is no help;
	// what is not fetched yet is short.
	s := a.Panes[a.Open].Subject()
	if s.Blocks == nil {
		return uicontext.Shown{}
	}
	doc, err := viewer.Build(a.Ctx, a.Look, s.Blocks(a.Ctx), viewer.Options{Depth: -1, Raw: true})
	if err != nil {
		return uicontext.Shown{}
	}
	return uicontext.Shown{Name: name + ".txt", Data: []byte(doc.Plain()), Blob: false}
}

// The least size that is drawn, and sizes at which the layout changes.
const (
	LeastWidth   = 40
	LeastHeight  = 10
	BesideWidth  = 110 // the detail panel stands beside the list
	thirdWidth   = 200 // requests about the item stand beside that
	borderHeight = 18  // lists have borders
)
