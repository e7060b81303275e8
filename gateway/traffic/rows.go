package traffic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Widths of columns in cells.
const (
	maxOriginCells = 28
	maxCallCells   = 48
	minCallCells   = 12
	minErrorCells  = 12
	keptErrorCells = 24   // kept free for an error message
	maxCellBytes   = 2000 // of a printed text
)

const (
	columnNumber = iota
	columnTime
	columnOrigin
	columnName
	columnStatus
	columnTook
	columnSize
	columnError
	columns
)

// row is one printed request.
type row struct {
	cells     [columns]string
	failed    bool
	secondary bool // a notification
}

// printRows prints lines as rows, or as JSON.
func (p *Printer) printRows(lines []*recording.Line) error {
	var out bytes.Buffer
	if p.o.JSON {
		for _, l := range lines {
			text, err := json.Marshal(l)
			if err != nil {
				return err
			}
			out.WriteString(termtext.JSON(string(text)) + "\n")
		}
	} else {
		rows := make([]row, len(lines))
		for i, l := range lines {
			rows[i] = p.row(l)
			for c, cell := range rows[i].cells {
				p.widths[c] = max(p.widths[c], termtext.Width(cell))
			}
		}
		p.widths[columnOrigin] = min(p.widths[columnOrigin], maxOriginCells)
		p.widths[columnName] = min(p.widths[columnName], maxCallCells)
		widths := p.fit()
		for i := range rows {
			out.WriteString(p.format(&rows[i], widths) + "\n")
		}
	}
	_, err := p.o.Out.Write(out.Bytes())
	return err
}

func (p *Printer) row(l *recording.Line) (r row) {
	rec := l.Record()
	if l.Type == recording.TypeRunning {
		rec.Status = registry.StatusInFlight
	}
	cell := func(s string) string { return termtext.Name(termtext.Truncate(s, maxCellBytes)) }
	r.failed, r.secondary = recording.IsFailure(&rec), recording.IsNotification(&rec)
	if p.o.Numbers && l.Number > 0 {
		r.cells[columnNumber] = fmt.Sprintf("#%d", l.Number)
	}
	r.cells[columnTime] = p.timeText(l.Time)
	arrow := "→"
	if rec.Direction == registry.ToClient {
		arrow = "←"
	}
	r.cells[columnOrigin] = cell(strings.TrimSpace(cmp.Or(rec.Client, "-") + " " + arrow + " " + cmp.Or(rec.Server, registry.Local)))
	r.cells[columnName] = cell(callName(&rec))
	r.cells[columnStatus] = cell(recording.StatusText(&rec))
	switch {
	case r.secondary:
	case l.Type == recording.TypeRunning:
		r.cells[columnTook] = termtext.Age(max(p.now().Sub(l.Time), 0))
		if p.o.Numbers { // the recording ends without the answer
			r.cells[columnTook] = ""
		}
	default:
		r.cells[columnTook] = termtext.Duration(rec.Duration - rec.UserWait)
		r.cells[columnSize] = termtext.Size(recording.Size(&rec))
	}
	note := strings.Join(strings.Fields(l.ErrorText()), " ")
	if rules := registry.RuleSummary(l.Rules); rules != "" {
		note = strings.TrimSpace("[" + rules + "] " + note)
	}
	r.cells[columnError] = cell(note)
	return r
}

// callName returns the name of what is called, read or got, with the method if that is
// less frequent.
func callName(r *registry.TrafficRecord) string {
	switch {
	case r.Name == "":
		return r.Method
	case r.Method == "tools/call" || r.Method == "resources/read":
		return r.Name
	}
	return r.Method + " " + r.Name
}

func (p *Printer) timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	at, now := at.Local(), p.now()
	switch {
	case p.o.Columns == 0 || p.o.Columns >= 110:
		return at.Format("2006-01-02 15:04:05.000")
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		return at.Format("15:04:05")
	}
	return at.Format("01-02 15:04:05")
}

// fit returns the widths of the columns on the terminal. Columns of width 0 are hidden.
func (p *Printer) fit() [columns]int {
	widths := p.widths
	room := p.o.Columns
	if room <= 0 {
		return widths
	}
	used := func() (n int) {
		for c, w := range widths {
			if w > 0 && c != columnError {
				n += w + 2
			}
		}
		return n - 2
	}
	shrink := func(c, least, room int) {
		if over := used() - room; over > 0 {
			widths[c] = max(widths[c]-over, min(widths[c], least))
		}
	}
	// An error message is worth more than long names and the size.
	wanted := room
	if widths[columnError] > 0 {
		wanted -= 2 + min(widths[columnError], keptErrorCells)
	}
	shrink(columnName, 24, wanted)
	if used() > wanted {
		widths[columnSize] = 0
	}
	shrink(columnOrigin, 16, wanted)
	shrink(columnName, minCallCells, wanted)
	if used() > room-2-minErrorCells && wanted < room {
		widths[columnTook] = 0
	}
	for _, c := range []int{columnTook, columnNumber, columnTime} {
		if used() > room {
			widths[c] = 0
		}
	}
	for _, c := range []int{columnOrigin, columnName, columnStatus} {
		shrink(c, 4, room)
	}
	if rest := room - used() - 2; rest >= minErrorCells {
		widths[columnError] = min(widths[columnError], rest)
	} else {
		widths[columnError] = 0
	}
	return widths
}

// Colors of rows, as SGR sequences.
const (
	colorFailed    = "\x1b[31m"
	colorSecondary = "\x1b[2m"
	colorNone      = "\x1b[0m"
)

func (p *Printer) format(r *row, widths [columns]int) string {
	var line strings.Builder
	for c, cell := range r.cells {
		w := widths[c]
		switch {
		case w == 0:
			continue
		case p.o.Columns > 0:
			cell = termtext.Cut(cell, w)
		}
		switch c {
		case columnTook, columnSize:
			cell = strings.Repeat(" ", max(0, w-termtext.Width(cell))) + cell
		case columnError:
		default:
			cell = termtext.Pad(cell, w)
		}
		line.WriteString(cell + "  ")
	}
	text := strings.TrimRight(line.String(), " ")
	switch {
	case p.o.Color && r.failed:
		return colorFailed + text + colorNone
	case p.o.Color && r.secondary:
		return colorSecondary + text + colorNone
	}
	return text
}
