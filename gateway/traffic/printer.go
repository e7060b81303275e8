// Package traffic prints requests of recordings and of the daemon as rows or JSON.
//
// It holds at most the rows of the limit, and one line of a recording. It is not safe for
// concurrent use. All text is made safe for terminals.
package traffic

import (
	"io"
	"time"

	"goblin/registry/recording"
)

// Options are the options of a Printer.
type Options struct {
	Out     io.Writer
	Columns int  // of the terminal; 0 cuts nothing
	Color   bool // color failures
	JSON    bool // print JSON lines, not rows
	Limit   int  // print only the last rows; 0 prints all
	Numbers bool // print the numbers of requests, for FILE#NUMBER
}

// Printer prints the last requests, or all. Columns grow with their content, because rows
// are printed before all are known.
type Printer struct {
	o      Options
	now    func() time.Time
	widths [columns]int
	tail   *recording.Tail // nil: rows are printed as they come
	batch  []*recording.Line
	total  int
}

// batchSize is the number of rows whose columns are aligned before they are printed.
const batchSize = 200

// NewPrinter returns a Printer.
func NewPrinter(o Options) *Printer {
	p := &Printer{o: o, now: time.Now}
	if o.Limit > 0 {
		p.tail = recording.NewTail(o.Limit)
	}
	return p
}

// Follow prints all later requests.
func (p *Printer) Follow() { p.tail = nil }

// Add adds a request. Its bodies may be dropped.
func (p *Printer) Add(l *recording.Line) error {
	p.total++
	if !p.o.JSON { // bodies are not printed
		l.DropBodies()
	}
	if p.tail != nil {
		p.tail.Add(l)
		return nil
	}
	p.batch = append(p.batch, l)
	if len(p.batch) < batchSize {
		return nil
	}
	return p.Flush()
}

// Flush prints what was added.
func (p *Printer) Flush() error {
	lines := p.batch
	if p.tail != nil {
		lines = p.tail.Lines()
	}
	p.batch = nil
	if len(lines) == 0 {
		return nil
	}
	return p.printRows(lines)
}

// Total returns the number of added requests, and the number that the limit hides.
func (p *Printer) Total() (all, hidden int) {
	if p.tail != nil {
		hidden = p.tail.Dropped()
	}
	return p.total, hidden
}
