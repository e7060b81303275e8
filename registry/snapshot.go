package registry

import (
	"errors"
	"iter"
)

// ErrBadCursor is returned for a cursor that no page of that kind gave.
var ErrBadCursor = errors.New("bad cursor")

// Snapshot is the catalog at one moment. It is immutable and stays valid as
// long as somebody holds it.
type Snapshot struct{}

// Page is a part of a list.
type Page struct {
	// Chunks, written one after another, are the inside of the JSON array:
	// the commas are in them. They alias the snapshot.
	Chunks [][]byte
	Next   string // cursor of the next page, "" at the last
}

// Version changes when, and only when, the visible list of a kind changed:
// its members or the content of one of them.
func (s *Snapshot) Version(k Kind) uint64 { return 0 }

// Page returns the page after the cursor, the first one for "". Cursors
// survive changes of the list: the page begins with the first entry behind
// the last one the client saw.
func (s *Snapshot) Page(k Kind, cursor string) (Page, error) { return Page{}, nil }

// Count returns the number of visible entries.
func (s *Snapshot) Count(k Kind) int { return 0 }

// All yields the visible entries in listed order.
func (s *Snapshot) All(k Kind) iter.Seq[*Entry] { return func(func(*Entry) bool) {} }

// Server yields the visible entries of one server in listed order.
func (s *Snapshot) Server(server string, k Kind) iter.Seq[*Entry] { return func(func(*Entry) bool) {} }
