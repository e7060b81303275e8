package names

import (
	"strings"
)

// FlatTemplate matches flat ids with a template. In flat ids, each run of bytes outside
// of [A-Za-z0-9.~-] is one underscore.
type FlatTemplate struct {
	parts []flatPart
}

type flatPart struct {
	lit      string // flattened
	original string
	reserved bool // {+v}: an underscore may stand for any bytes
	variable bool
}

// Flatten returns the template's flat form. ok is false if it has expressions other than
// {v} and {+v}, which are ambiguous in flat ids. flatten must be the function that
// creates the flat ids.
func (t *Template) Flatten(flatten func(string) string) (f *FlatTemplate, ok bool) {
	f = &FlatTemplate{}
	for i, p := range t.parts {
		if p.vars == nil {
			lit := flatten(p.lit)
			if i == 0 {
				lit = strings.TrimLeft(lit, "_")
			}
			f.parts = append(f.parts, flatPart{lit: lit, original: p.lit})
			continue
		}
		if len(p.vars) != 1 || p.vars[0].explode || p.vars[0].max > 0 || p.op != 0 && p.op != '+' {
			return nil, false
		}
		f.parts = append(f.parts, flatPart{variable: true, reserved: p.op == '+'})
	}
	return f, true
}

// Prefix returns the flattened text before the first variable.
func (f *FlatTemplate) Prefix() string {
	if len(f.parts) == 0 || f.parts[0].variable {
		return ""
	}
	return f.parts[0].lit
}

// parse returns the number of ways to expand the template to s (2 for several). It
// returns the URI if there is exactly one. It returns 0 if the budget is spent.
func (f *FlatTemplate) parse(s string, budget *MatchBudget) (uri string, ways int) {
	if len(s) > MaxURI || !budget.spend(perTemplate+compareCost(f.Prefix())) || !strings.HasPrefix(s, f.Prefix()) {
		return "", 0
	}
	work := 1
	for i := range f.parts {
		work += compareCost(f.parts[i].lit)
	}
	if !budget.spend(2 * work * (len(s) + 1)) {
		return "", 0
	}
	// count[i][p] is the number of ways in which parts i and later match s[p:]. inside[p]
	// is the same for a variable i that already matched some of s[:p].
	n := len(s)
	count := make([][]uint8, len(f.parts)+1)
	space := make([]uint8, (len(f.parts)+1)*(n+1))
	for i := range count {
		count[i] = space[i*(n+1) : (i+1)*(n+1)]
	}
	count[len(f.parts)][n] = 1
	inside := make([]uint8, n+2)
	for i := len(f.parts) - 1; i >= 0; i-- {
		p, here, next := &f.parts[i], count[i], count[i+1]
		if !p.variable {
			for q := 0; q+len(p.lit) <= n; q++ {
				if next[q+len(p.lit)] > 0 && strings.HasPrefix(s[q:], p.lit) {
					here[q] = next[q+len(p.lit)]
				}
			}
			continue
		}
		clear(inside)
		for q := n; q >= 0; q-- {
			if q > 0 && s[q-1] != '_' {
				inside[q] = next[q]
			}
			if q < n && p.accepts(s[q]) {
				inside[q] = min(2, inside[q]+inside[q+1])
			}
			if q < n && s[q] != '_' {
				here[q] = inside[q+1]
			}
		}
	}
	if count[0][0] != 1 {
		return "", int(count[0][0])
	}
	return f.expand(s, count), 1
}

func (p *flatPart) accepts(c byte) bool { return c != '_' || !p.reserved }

func (f *FlatTemplate) expand(s string, count [][]uint8) string {
	var b strings.Builder
	at := 0
	for i := range f.parts {
		p := &f.parts[i]
		if !p.variable {
			b.WriteString(p.original)
			at += len(p.lit)
			continue
		}
		end := at + 1
		for count[i+1][end] == 0 || s[end-1] == '_' {
			end++
		}
		b.WriteString(s[at:end])
		at = end
	}
	return b.String()
}
