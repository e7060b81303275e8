package list

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Span is a range of bytes in a text, from Start up to but not including End.
type Span struct{ Start, End int }

// Spans gives what to highlight in a text: where the words are, and the
// characters of the ~words. Values of fields and what is excluded are not
// included. The ranges lie on rune boundaries, are sorted and do not touch
// each other. It costs microseconds: call it for what is in sight.
func (q *Query) Spans(text string) []Span {
	if len(q.words)+len(q.fuzzies) == 0 {
		return nil
	}
	low, moved := fold(text)
	var at []int
	if moved {
		at = origins(text, len(low))
	}
	// back turns a range of the folded text into one of the text.
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
		// As it is first, for camel case counts.
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

// merge sorts spans and joins those that overlap or touch.
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
