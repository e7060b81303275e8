package filter

import "strings"

// Narrows says that rows which match this query are among those that matched
// prev, so that only these need to be searched. Both must be about the same
// index. It is false when in doubt: after a ranked query, whose order a plain
// one must not inherit, and after one that asked for what changes by itself
// (yes or no, ages, numbers).
func (q *Query) Narrows(prev *Query) bool {
	if prev == nil || prev.Ranked() && !q.Ranked() {
		return false
	}
	for i := range prev.words {
		if !q.impliesWord(&prev.words[i]) {
			return false
		}
	}
	for i := range prev.fuzzies {
		if !q.impliesFuzzy(&prev.fuzzies[i]) {
			return false
		}
	}
	for i := range prev.conds {
		if !q.impliesCond(&prev.conds[i]) {
			return false
		}
	}
	return true
}

func (q *Query) impliesWord(was *word) bool {
	for i := range q.words {
		is := &q.words[i]
		if is.not == was.not && (!is.not && is.implies(was) || is.not && was.implies(is)) {
			return true
		}
	}
	return false
}

// implies says that a text with w has v too.
func (w *word) implies(v *word) bool {
	if v.exact {
		return w.exact && strings.Contains(w.text, v.text)
	}
	return strings.Contains(w.low, v.low)
}

func (q *Query) impliesFuzzy(was *fuzzyWord) bool {
	for i := range q.words {
		if was.not || q.words[i].not {
			continue
		}
		if _, ok := was.in(q.words[i].low); ok {
			return true
		}
	}
	for i := range q.fuzzies {
		is := &q.fuzzies[i]
		if is.not != was.not {
			continue
		}
		wide, narrow := was, is
		if is.not {
			wide, narrow = is, was
		}
		if _, ok := wide.in(narrow.low); ok {
			return true
		}
	}
	return false
}

func (q *Query) impliesCond(was *cond) bool {
	if was.texts == nil {
		return false
	}
	for i := range q.conds {
		is := &q.conds[i]
		if is.texts == nil || is.not != was.not || is.field.Name != was.field.Name {
			continue
		}
		if !is.not && implyAny(is.texts, was.texts) || is.not && implyAny(was.texts, is.texts) {
			return true
		}
	}
	return false
}

// implyAny says that each of ps implies one of rs.
func implyAny(ps, rs []pattern) bool {
	for i := range ps {
		ok := false
		for k := range rs {
			ok = ok || ps[i].implies(&rs[k])
		}
		if !ok {
			return false
		}
	}
	return true
}

// implies says that r fits every value that p fits.
func (p *pattern) implies(r *pattern) bool {
	switch {
	case p.parts == nil && p.whole:
		return r.fits(p.text)
	case r.parts != nil:
		return p.parts != nil && p.text == r.text
	case r.whole:
		return false
	case p.parts == nil:
		return strings.Contains(p.text, r.text)
	}
	for _, part := range p.parts {
		if strings.Contains(part, r.text) {
			return true
		}
	}
	return false
}
