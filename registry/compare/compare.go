// Package compare finds the differences of JSON values, requests, definitions and recordings.
//
// Members of objects are compared by name, numbers by value, and elements of arrays after
// an alignment: one inserted element is one difference. Paths of differences follow
// RFC 9535 ($.rows[2].when). Patterns ([ParseIgnored]) exclude paths.
//
// All input is untrusted: the number of values, the depth and the number of listed
// differences are limited. All functions are pure and safe for concurrent use; results
// alias their input. Texts in results are not sanitized.
package compare

import (
	"fmt"
)

// Limits of one comparison.
const (
	// MaxValues is the maximum number of values in each text.
	MaxValues = 400_000
	// maxDepth is the nesting below which values are compared as a whole.
	maxDepth = 100
	// MaxListed is the number of differences that a result lists.
	MaxListed = 1000
)

// Op is the kind of a difference.
type Op string

// The values of [Op].
const (
	Same    Op = "same"
	Changed Op = "changed"
	Removed Op = "removed" // only in A
	Added   Op = "added"   // only in B
	Ignored Op = "ignored" // excluded by a pattern
	// Unknown is a part of one side that the other side lacks because it was cut.
	Unknown Op = "unknown"
)

// Mark returns the character that marks an Op in texts.
func (o Op) Mark() string {
	switch o {
	case Changed:
		return "~"
	case Removed:
		return "-"
	case Added:
		return "+"
	}
	return " "
}

// Difference is one difference of two values.
type Difference struct {
	Op Op
	// Path is the place in A, or of an added value the place in B.
	Path Path
	// PathB is the place in B if its indexes differ from those of Path.
	PathB Path
	// A and B are the JSON texts of the values, nil if missing.
	A, B []byte
}

// Result is the outcome of a comparison.
type Result struct {
	Differences []Difference // at most MaxListed
	More        int          // further differences
	Ignored     int          // values that a pattern excluded
	root        *node
}

// Count returns the number of all differences.
func (r *Result) Count() int { return len(r.Differences) + r.More }

// IsEqual reports whether there are no differences.
func (r *Result) IsEqual() bool { return r.Count() == 0 }

// Summary returns a line such as "4 differences; 1 path ignored". patterns is the number
// of ignored paths.
func (r *Result) Summary(patterns int) string {
	text := "no differences"
	if n := r.Count(); n > 0 {
		text = plural(n, "difference")
	}
	if patterns > 0 {
		text += "; " + plural(patterns, "path") + " ignored"
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Options control a comparison.
type Options struct {
	Ignore Patterns
	// ACut and BCut report that a text is only the beginning of a longer one.
	ACut, BCut bool
}

// Values compares two JSON texts. It fails if one of them is invalid or has more than
// [MaxValues] values.
func Values(a, b []byte, o Options) (*Result, error) {
	va, err := parse(a, o.Ignore, o.ACut)
	if err != nil {
		return nil, fmt.Errorf("read A: %w", err)
	}
	vb, err := parse(b, o.Ignore, o.BCut)
	if err != nil {
		return nil, fmt.Errorf("read B: %w", err)
	}
	return newResult(match(va, vb, 0)), nil
}

// node is a pair of values of both sides, or one value.
type node struct {
	op   Op
	a, b *value
	// kids are the pairs of members or elements if a and b are containers of the same
	// kind that differ.
	kids   []node
	ia, ib int // of an element: its indexes, -1 if missing
}

func newResult(root node) *Result {
	r := &Result{root: &root}
	r.collect(&root, nil, nil)
	return r
}

func (r *Result) collect(n *node, pa, pb Path) {
	switch n.op {
	case Ignored:
		r.Ignored++
		return
	case Same:
		r.Ignored += n.a.ignoredBelow
		return
	case Unknown:
		return
	}
	if len(n.kids) > 0 {
		for i := range n.kids {
			k := &n.kids[i]
			r.collect(k, k.step(pa, k.a, k.ia, n.isArray()), k.step(pb, k.b, k.ib, n.isArray()))
		}
		return
	}
	if len(r.Differences) == MaxListed {
		r.More++
		return
	}
	d := Difference{Op: n.op, Path: pa.clone()}
	if n.a != nil {
		d.A = n.a.text
	} else {
		d.Path = pb.clone()
	}
	if n.b != nil {
		d.B = n.b.text
	}
	if n.op == Changed && !pa.equal(pb) {
		d.PathB = pb.clone()
	}
	r.Differences = append(r.Differences, d)
}

func (n *node) isArray() bool { return n.a != nil && n.a.kind == '[' }

// step returns the path of a member or element of the container at p. The path of a
// missing one is never used.
func (n *node) step(p Path, v *value, index int, inArray bool) Path {
	if v == nil {
		return p
	}
	if inArray {
		return append(p[:len(p):len(p)], Step{Index: index, IsIndex: true})
	}
	return append(p[:len(p):len(p)], Step{Name: v.name, Occurrence: v.occurrence})
}
