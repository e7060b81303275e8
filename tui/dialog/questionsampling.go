package dialog

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/textfield"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// SamplingQuestion is a dialog for a sampling request, which the user answers instead of
// a model.
type SamplingQuestion struct {
	uicontext.BaseDialog
	app    *uicontext.Context
	finish finisher
	params json.RawMessage
	about  string

	View   *viewer.View
	width  int // of the current or pending layout
	cancel context.CancelFunc

	Area      textfield.Field
	drawn     []string // drawn text area; nil after input
	hidden    string   // explains the marks in the text area
	aw, ah    int
	note      string
	confirmed bool // the next reject key discards text
}

// maxAnswer is the longest answer, in characters.
const maxAnswer = 32 << 10

func newSampling(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog {
	d := &SamplingQuestion{app: a, finish: finish, params: params, about: askerText(params), View: viewer.NewView(a.Theme), cancel: func() {}}
	d.Area = textfield.NewWrapped(a.Theme)
	d.Area.Limit = maxAnswer
	return d
}

func (d *SamplingQuestion) Heading() string {
	return askerName(d.params) + " asks for a model's answer"
}
func (d *SamplingQuestion) Size(w, h int) (int, int) { return min(w, 110), h }
func (d *SamplingQuestion) Typing() bool             { return true }

func (d *SamplingQuestion) build(width int) tea.Cmd {
	if width <= 0 || width == d.width {
		return nil
	}
	d.cancel()
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.width, d.cancel = width, cancel
	lk, params, about := d.app.Theme, d.params, d.about
	return func() tea.Msg {
		defer cancel()
		doc, err := viewer.Build(ctx, lk, samplingBlocks(params, about), viewer.Options{Width: width, Depth: uicontext.DefaultDepth})
		return keys.FuncMsg(func() tea.Cmd {
			if err == nil && d.width == width {
				d.View.Show(doc, true)
			}
			return nil
		})
	}
}

func samplingBlocks(params json.RawMessage, about string) []viewer.Section {
	var p struct {
		SystemPrompt   string          `json:"systemPrompt"`
		MaxTokens      json.Number     `json:"maxTokens"`
		Temperature    json.Number     `json:"temperature"`
		StopSequences  []string        `json:"stopSequences"`
		IncludeContext string          `json:"includeContext"`
		Tools          json.RawMessage `json:"tools"`
		Preferences    struct {
			Hints []struct {
				Name string `json:"name"`
			} `json:"hints"`
			Cost         json.Number `json:"costPriority"`
			Speed        json.Number `json:"speedPriority"`
			Intelligence json.Number `json:"intelligencePriority"`
		} `json:"modelPreferences"`
	}
	err := json.Unmarshal(params, &p)
	var models, stops []string
	for _, h := range p.Preferences.Hints {
		models = append(models, h.Name)
	}
	for _, s := range p.StopSequences {
		stops = append(stops, strconv.Quote(s))
	}
	blocks := []viewer.Section{
		{Kind: viewer.Note, Text: about + " Answer in place of a model."},
		{Kind: viewer.Fields, Fields: []viewer.Field{
			{Label: "model", Value: strings.Join(models, ", ")},
			{Label: "intelligence", Value: p.Preferences.Intelligence.String()},
			{Label: "speed", Value: p.Preferences.Speed.String()},
			{Label: "cost", Value: p.Preferences.Cost.String()},
			{Label: "max tokens", Value: p.MaxTokens.String()},
			{Label: "temperature", Value: p.Temperature.String()},
			{Label: "stop sequences", Value: strings.Join(stops, ", ")},
			{Label: "context", Value: p.IncludeContext},
		}},
	}
	if p.SystemPrompt != "" {
		blocks = append(blocks, viewer.Section{Title: "System prompt", Kind: viewer.Text, Text: p.SystemPrompt})
	}
	blocks = append(blocks, viewer.FromPrompt(params)...)
	if len(p.Tools) > 0 {
		blocks = append(blocks, viewer.Section{Title: "Tools", Kind: viewer.JSON, Data: p.Tools})
	}
	if err != nil { // later members may be missing
		blocks = append(blocks, viewer.Section{Title: "Raw request", Kind: viewer.JSON, Data: params})
	}
	return blocks
}

func (d *SamplingQuestion) Lines(w, h int) []string {
	lk := d.app.Theme
	if w != d.width {
		d.app.Wake() // triggers a new layout
	}
	below := max(3, min(h/3, 12))
	top := max(h-below-1, 0)
	out := d.View.Lines(w, top)
	if d.drawn == nil || d.aw != w || d.ah != below {
		d.draw(w, below)
	}
	title := lk.Title.On("Your answer")
	right := uicontext.PositionText(d.View)
	if note := cmp.Or(d.note, d.hidden); note != "" {
		right = lk.Warn.On(note)
	}
	out = append(out, lk.Rule(lk.Horizontal, title, right, lk.Horizontal, w, lk.Border))
	for _, l := range d.drawn {
		out = append(out, " "+l)
	}
	return lk.Lines(out, w, h)
}

func (d *SamplingQuestion) Keys() keys.Table {
	page := func(by float64) func() tea.Cmd { return func() tea.Cmd { d.View.Page(by); return nil } }
	return keys.Table{
		{ID: "sampling.send", Hint: "send", Long: "Send your answer", Run: d.send},
		{ID: "sampling.page-down", Hint: "page down", Long: "Scroll the request a page down", Run: page(1)},
		{ID: "sampling.page-up", Hint: "page up", Long: "Scroll the request a page up", Run: page(-1)},
		{ID: "sampling.reject", Hint: "reject", Long: "Reject (asks again if you typed something)", Run: d.reject},
	}
}

func (d *SamplingQuestion) reject() tea.Cmd {
	if strings.TrimSpace(d.Area.Value()) != "" && !d.confirmed {
		d.confirmed, d.note = true, d.app.KeyOf("sampling.reject")+" again rejects and discards your text"
		return nil
	}
	d.cancel()
	return d.finish(nil, errRejected, "Rejected")
}

func (d *SamplingQuestion) send() tea.Cmd {
	text := d.Area.Value()
	if strings.TrimSpace(text) == "" {
		d.note = "nothing to send yet; " + d.app.KeyOf("sampling.reject") + " rejects"
		return nil
	}
	d.cancel()
	return d.finish(samplingResult(text), nil, "Answer sent")
}

func (d *SamplingQuestion) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.View.Scroll, msg)
	if key, ok := msg.(tea.KeyMsg); ok {
		d.confirmed, d.note, d.drawn = false, "", nil
		d.Area.Update(key)
	}
	return nil
}

// draw lays out the text area. The title line explains its marks.
func (d *SamplingQuestion) draw(w, h int) {
	d.aw, d.ah = w, h
	mark := "¤"
	if d.app.Theme.ASCII {
		mark = "?"
	}
	rows, hidden := d.Area.Wrapped(max(w-2, 1), h, mark)
	d.drawn, d.hidden = rows, ""
	for _, piece := range hidden {
		d.hidden += " " + uicontext.SanitizeLine(piece)
	}
	if d.hidden != "" {
		d.hidden = mark + " =" + uicontext.CutText(d.hidden, 60)
	}
}

func samplingResult(text string) any {
	type textContent struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return struct {
		Role       string      `json:"role"`
		Content    textContent `json:"content"`
		Model      string      `json:"model"`
		StopReason string      `json:"stopReason"`
	}{"assistant", textContent{"text", text}, "human", "endTurn"}
}

func (d *SamplingQuestion) SetTheme() {
	d.View.SetTheme(d.app.Theme)
	d.Area.SetTheme(d.app.Theme)
	d.drawn = nil
}
