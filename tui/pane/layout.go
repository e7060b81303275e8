package pane

import (
	"path"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/tui/activity"
	"goblin/tui/compare"
	"goblin/tui/keys"
	"goblin/tui/resourcehistory"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Layout holds the panes, through which they reach each other, and their details.
type Layout struct {
	*uicontext.Context
	Panes          []Pane
	Handlers       []map[string]keys.Handler
	Details        []*detail
	Open           int
	Inside         bool         // the detail has the focus
	Opened         bool         // open if not beside the list
	UsedPanes      map[int]bool // panes in which the user did something
	Split          split
	Pulse          *activity.History
	Demo           bool
	OwnConfig      bool // not the demo's
	NoWrap         bool
	zoomed         bool // the detail fills the body
	zoomMovedFocus bool // … and the zoom moved the focus there
	zoomOpened     bool // … and the zoom opened it
	queryPath      string

	compare     *compare.Marks
	contents    *resourcehistory.Store
	jumps       []jump // that led here
	LastClick   Click
	OnShow      func()            // when another pane is shown
	OnFilterSet func(text string) // when a filter was set, not typed
	Intro       func() []viewer.Section
}

// AddPanes creates the panes of this package and appends others. The Context must be set.
func (a *Layout) AddPanes(others ...Pane) {
	a.compare = compare.NewMarks(a.Context)
	a.contents = resourcehistory.NewStore(a.Context)
	a.Calls.OnRead = a.contents.Add
	a.Panes = append([]Pane{newServers(a), newTools(a), newPrompts(a), newResources(a), newLogs(a)}, others...)
	for _, p := range a.Panes {
		a.Handlers = append(a.Handlers, p.Handlers())
		a.Details = append(a.Details, newDetail(a))
	}
	a.Open, a.UsedPanes = PaneResources, map[int]bool{}
	switch {
	case len(a.Reg.States()) == 0:
		a.Open = PaneServers // it shows the first steps
	case a.OwnConfig:
		a.Open = PaneHome
	}
}

// paneIDs are the bindings that show a pane, which is not a use of it.
var paneIDs = []string{"servers", "tools", "prompts", "resources", "logs", "usage", "saved", "home"}

// RunBinding runs a binding and records the pane as used.
func (a *Layout) RunBinding(id string, run func() tea.Cmd) tea.Cmd {
	open := a.Open
	cmd := run()
	if a.Open == open && !slices.Contains(paneIDs, id) {
		a.UsedPanes[open] = true
	}
	return cmd
}

func (a *Layout) starting() bool {
	return slices.ContainsFunc(a.Reg.States(), func(s registry.ServerState) bool {
		return s.State == registry.StateConnecting && !IsDown(s)
	})
}

// UpdateDetail shows the subject under the cursor in the detail.
func (a *Layout) UpdateDetail() tea.Cmd {
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
	PaneSaved
	PaneHome
)

// Places of the detail.
const (
	placeAuto = iota
	placeBeside
	placeBelow
	PlaceHidden
)

// NextPlace moves the detail to its next place and returns its name. It skips places that
// would look the same.
func (a *Layout) NextPlace() string {
	was := a.Geometry()
	for range PlaceHidden {
		a.Split.Place = (a.Split.Place + 1) % (PlaceHidden + 1)
		a.Opened = a.Opened || a.Split.Place == placeBelow
		if a.Geometry() != was {
			break
		}
	}
	return a.PlaceName()
}

// PlaceName returns the name of the detail's place.
func (a *Layout) PlaceName() string {
	return PlaceNames[a.Split.Place]
}

// PlaceNames are the names of the detail's places.
var PlaceNames = []string{"auto", "beside", "below", "hidden"}

// SetPlace moves the detail to a named place.
func (a *Layout) SetPlace(name string) {
	a.Split.Place = slices.Index(PlaceNames, name)
	a.Opened = a.Opened || a.Split.Place == placeBelow
}

// Zoom toggles whether the focused part fills the whole body.
func (a *Layout) Zoom() tea.Cmd {
	if a.Inside {
		a.zoomed, a.zoomMovedFocus, a.zoomOpened = !a.zoomed, false, false
		if a.zoomed {
			return a.Say("Detail maximized; %s restores the list", a.KeyOf("widen"))
		}
		return nil
	}
	if a.Split.Place == PlaceHidden {
		a.Split.Place = a.Split.Before
		return a.Say("Detail: %s", a.PlaceName())
	}
	a.Split.Before, a.Split.Place = a.Split.Place, PlaceHidden
	return a.Say("List maximized; %s restores the detail", a.KeyOf("widen"))
}

// WhyNoField returns a function that explains why the open list has no such field, or
// returns "".
func (a *Layout) WhyNoField(name string) func(string) string {
	return func(string) string {
		p := a.Panes[a.Open]
		if _, ok := query.FindTextField(p.Rows().FilterFields(), name); ok {
			return ""
		}
		of, _ := p.Tab()
		return of + " has no filter field " + name
	}
}

// WhyNoOrder explains why the open list has no order with a name, or returns "".
func (a *Layout) WhyNoOrder(name string) string {
	all := a.Panes[a.Open].Rows().OrderNames()
	if name == "" || slices.Contains(all, name) {
		return ""
	}
	return "cannot sort by " + uicontext.SanitizeLine(name) + "; choose " + strings.Join(all, ", ")
}

type split struct {
	Place       int
	Before      int // place before it was hidden
	ListPercent int
}

// DefaultSplit returns the split of a new UI.
func DefaultSplit() split { return split{ListPercent: 55} }

// Geometry holds the rectangles of all parts. It depends only on the layout's state, so
// that drawing and clicking agree.
type Geometry struct {
	Small  bool
	Border int // 0 or 1
	body   uicontext.Rect
	List   uicontext.Rect
	Detail uicontext.Rect // H is 0 when it is hidden
	Third  uicontext.Rect
}

// Geometry returns the current geometry.
func (a *Layout) Geometry() Geometry {
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
		w := all * a.Split.ListPercent / 100
		g.List.W = w
		g.Detail = uicontext.Rect{X: w, Y: g.body.Y, W: all - w, H: g.body.H}
		return g
	}
	if a.H < borderHeight { // there is room for one of them
		if a.Inside {
			g.Detail, g.List.H = g.body, 0
		}
		return g
	}
	percent := a.Split.ListPercent - 5
	if a.needsWidth() && a.Logs().Open == TabTimeline { // a row is a whole call
		percent = min(percent+20, 85)
	}
	h := max(5, g.body.H*percent/100)
	g.List.H = h
	g.Detail = uicontext.Rect{X: 0, Y: g.body.Y + h, W: g.body.W, H: g.body.H - h}
	return g
}

// Zoomed reports whether the detail fills the whole body.
func (a *Layout) Zoomed() bool { return a.Inside && a.zoomed }

// Unzoom shows the list again and restores the focus. It returns false if the list is
// visible.
func (a *Layout) Unzoom() bool {
	was := a.Zoomed()
	if was {
		a.zoomed, a.Inside = false, !a.zoomMovedFocus
		a.Opened = a.Opened && !a.zoomOpened
		a.zoomOpened = false
	}
	return was
}

// Beside reports whether the detail is beside the list.
func (a *Layout) Beside() bool {
	return a.Split.Place == placeBeside || a.Split.Place != placeBelow && a.W >= BesideWidth && !a.needsWidth()
}

// needsWidth reports whether the open list fills the whole width, so that its detail is
// below.
func (a *Layout) needsWidth() bool {
	return a.Open == PaneLogs && a.Logs().needsWidth()
}

func (a *Layout) detailWanted() bool {
	return a.Open != PaneHome && (a.Split.Place != PlaceHidden && (a.Beside() || a.Opened || a.needsWidth() && a.W >= BesideWidth) || a.Inside)
}

// DetailShown reports whether the detail is visible.
func (a *Layout) DetailShown() bool {
	g := a.Geometry()
	return g.Detail.H > 0 && g.Detail.W > 0
}

// FocusDetail opens the detail and moves the focus there. If the list and the detail below
// it have too little room, the detail fills the body.
func (a *Layout) FocusDetail() tea.Cmd { return a.focusDetail(a.H < tallHeight) }

func (a *Layout) focusDetail(whole bool) tea.Cmd {
	was := a.Opened
	a.Inside, a.Opened, a.zoomed, a.zoomOpened = true, true, false, false
	if whole && !a.Beside() {
		a.zoomed, a.zoomMovedFocus, a.zoomOpened = true, true, !was
	}
	return nil
}

// rowNumber returns the number of the row under the cursor, from 1, and the number of
// rows. Folded rows at the start do not count.
func (a *Layout) rowNumber() (row, rows int) {
	r := a.Panes[a.Open].Rows()
	return r.Cursor() + 1 - r.HeadRows(), r.Len() - r.HeadRows()
}

// NextRow moves the cursor of the list while the detail has the focus.
func (a *Layout) NextRow(by int) tea.Cmd {
	before, _ := a.rowNumber()
	a.Panes[a.Open].Rows().Move(by)
	a.CursorMoved()
	if after, _ := a.rowNumber(); after == before {
		return a.Say("No more rows")
	}
	return nil
}

// Enlarge makes a detail below the list fill the body.
func (a *Layout) Enlarge() tea.Cmd {
	if a.DetailShown() && !a.Beside() && !a.Zoomed() {
		a.zoomed, a.zoomMovedFocus, a.Inside = true, !a.Inside, true
	}
	return nil
}

// openDetail opens the detail, and focuses it if beside is false or only one of both has
// room. An open detail below a list fills the whole body.
func (a *Layout) openDetail(beside bool) tea.Cmd {
	if !a.Beside() && a.H < tallHeight {
		return a.focusDetail(true)
	}
	if beside && a.DetailShown() {
		a.Enlarge()
	}
	a.Opened = true
	if !beside || !a.DetailShown() {
		a.Inside = true
	}
	return nil
}

type cursorListener interface{ CursorMoved() }

// CursorMoved notifies the open pane that the user moved the cursor.
func (a *Layout) CursorMoved() {
	if p, ok := a.Panes[a.Open].(cursorListener); ok {
		p.CursorMoved()
	}
}

// Click is the last click, to detect a double click.
type Click struct {
	X, Y int
	Time time.Time
}

// SetFilter filters the open pane by a text, as if it were typed.
func (a *Layout) SetFilter(text string) tea.Cmd {
	a.OnFilterSet(text)
	return a.Panes[a.Open].Rows().Filter(text)
}

// whyNoContent explains why an item has no content to copy or save, and how to get it.
// The definition is no substitute, because it would be saved under the content's name.
func (a *Layout) whyNoContent(it uicontext.Item, untried string) string {
	switch inv := uicontext.CachedInvocation(a.Reg, it); {
	case inv == nil:
		return "it " + untried
	case inv.Result == nil:
		return "the last request failed; " + a.KeyOf("reload") + " retries it"
	}
	return ""
}

// Content returns the content for copying, files, pagers and editors.
func (a *Layout) Content() uicontext.CachedContent {
	if p, ok := a.Panes[a.Open].(interface {
		ShownContent() uicontext.CachedContent
	}); ok {
		return p.ShownContent()
	}
	it := a.Panes[a.Open].Item()
	name := path.Base(strings.TrimRight(it.Name, "/"))
	if inv := uicontext.CachedInvocation(a.Reg, it); inv != nil && inv.Result != nil {
		if inv.Expanded != "" {
			name = path.Base(strings.TrimRight(inv.Expanded, "/"))
		}
		if file, _, data, ok := viewer.FirstBlob(inv.Result); ok {
			if file != "" {
				name = path.Base(file)
			}
			return uicontext.CachedContent{Name: name, Data: data, Blob: true}
		}
		if text := viewer.JoinText(inv.Result); text != "" {
			return uicontext.CachedContent{Name: name, Data: []byte(text), Blob: false}
		}
		return uicontext.CachedContent{Name: name + ".json", Data: uicontext.Pretty(inv.Result), Blob: false}
	}
	// The detail may be closed or outdated. Without content, its text is short enough to
	// be built here.
	s := a.Panes[a.Open].Subject()
	if s.Blocks == nil {
		return uicontext.CachedContent{}
	}
	doc, err := viewer.Build(a.Ctx, a.Theme, s.Blocks(a.Ctx), viewer.Options{Depth: -1, Raw: true})
	if err != nil {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: name + ".txt", Data: []byte(doc.Plain()), Blob: false}
}

// Minimum size, and sizes at which the layout changes, in cells.
const (
	LeastWidth   = 40
	LeastHeight  = 10
	BesideWidth  = 110 // the detail is beside the list
	thirdWidth   = 200 // requests about the item are beside the detail
	borderHeight = 18  // lists have borders
	tallHeight   = 30  // a list and the detail below it have room
)
