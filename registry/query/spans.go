package query

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Span is a range of bytes in a text, excluding End.
type Span struct{ Start, End int }

// Spans returns the ranges to highlight: words, and the characters of ~words. It omits
// field values and excluded terms. Ranges are on rune boundaries, sorted and separate. A
// call takes microseconds, so call it for visible rows only.
func (q *Query) Spans(text string) []Span {
	if len(q.words)+len(q.fuzzies) == 0 {
		return nil
	}
	low, moved := fold(text)
	var at []int
	if moved {
		at = origins(text, len(low))
	}
	// back maps a range of the folded text to the text.
	back := func(start, end int) Span {
		if moved {
			return Span{at[start], at[end]}
		}
		return Span{start, end}
	}
	var all []Span
	for i := range q.words {
		w := &q.words[i]
		switch {
		case w.not:
		case w.exact:
			all = occurrences(all, text, w.text, func(start, end int) Span { return Span{start, end} })
		default:
			all = occurrences(all, low, w.low, back)
		}
	}
	for i := range q.fuzzies {
		f := &q.fuzzies[i]
		if f.not {
			continue
		}
		// the original text first, because camel case matters
		if m, ok := f.match(text); ok {
			for _, k := range m.MatchedIndexes {
				_, size := utf8.DecodeRuneInString(text[k:])
				all = append(all, Span{k, k + size})
			}
		} else if m, ok := f.match(low); ok {
			for _, k := range m.MatchedIndexes {
				_, size := utf8.DecodeRuneInString(low[k:])
				all = append(all, back(k, k+size))
			}
		}
	}
	return merge(all)
}

func occurrences(all []Span, in, word string, span func(start, end int) Span) []Span {
	for from := 0; ; {
		i := strings.Index(in[from:], word)
		if i < 0 {
			return all
		}
		all = append(all, span(from+i, from+i+len(word)))
		from += i + len(word)
	}
}

func merge(all []Span) []Span {
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}
