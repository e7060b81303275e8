package search

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// Limits of indexed text, which servers choose.
const (
	maxField     = 4096     // bytes of a field
	maxArguments = 100      // names
	maxTerms     = 1000     // of an entry
	maxRead      = 64 << 20 // bytes of a list
)

// field defines the value of an occurrence: the weight, divided by the field's length
// relative to the usual one to the degree of bias.
type field struct {
	weight, bias, usual float32
	pairs               bool
}

var (
	nameField        = field{weight: 4, bias: 0.5, usual: 4, pairs: true}
	titleField       = field{weight: 2.5, bias: 0.5, usual: 4, pairs: true}
	descriptionField = field{weight: 0.5, bias: 0.6, usual: 30}
	uriField         = field{weight: 0.4, bias: 0.5, usual: 8, pairs: true}
	argumentField    = field{weight: 0.3, bias: 0.5, usual: 6}
	meaningField     = field{weight: 0.4, bias: 0.6, usual: 40}
	serverField      = field{weight: 1, usual: 1}
)

// saturation is BM25's k1: how much repeated occurrences add.
const saturation = 1.2

// segment is the immutable index of some documents, numbered from 0: a sorted dictionary,
// and a posting list per term. A posting list contains the number of documents, then for
// each its distance from the previous one and its weight. Numbers are varints.
type segment struct {
	docs    int
	terms   string // concatenated
	termEnd []uint32
	letters []uint32 // per term: [lettersOf]
	filter  filter   // terms and their beginnings
	words   int      // the first term after the digits
	posts   []byte
	postEnd []uint32
	read    int // bytes of text
	partial int // documents read in part
}

// Bytes of a segment in addition to the terms' text.
const (
	bytesOfTerm = 12 + 4 + filterBits/8
	bytesOfPost = 3
)

func (s *segment) size() int {
	return len(s.terms) + len(s.posts) + 12*len(s.termEnd) + 8*len(s.filter)
}

// newSegment indexes the entries of a part in at most room bytes. It fails if ctx is
// done.
func newSegment(ctx context.Context, p registry.Part, room int) (*segment, error) {
	n := p.Len()
	b := builder{ids: map[string]int32{}, room: room, posts: make([]post, 0, min(n*16, room/bytesOfPost))}
	// Backwards, so that the chains are in order.
	for doc := n - 1; doc >= 0; doc-- {
		if doc%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.add(uint32(doc), p.At(doc))
	}
	return b.finish(n), nil
}

type builder struct {
	lexer
	ids   map[string]int32
	heads []int32   // per term: its first post, or -1
	sums  []float32 // per term: weight in the current document
	used  []int32   // terms of the current document
	field []int32   // terms of the current field
	posts []post

	room, taken int // maximum and current bytes
	bytes       int // of read text
	partial     int // documents read in part
}

// post is one posting; those of a term are chained by next.
type post struct {
	doc    uint32
	next   int32
	weight uint8
}

func (b *builder) add(doc uint32, e *registry.Entry) {
	b.used = b.used[:0]
	name, whole := e.Label, b.taken < b.room/4*3 && b.bytes < maxRead/4*3
	if e.Kind == registry.Tool || e.Kind == registry.Prompt {
		if name = e.ClientName(); name != e.Name {
			b.read(&uriField, e.Name) // the server's own name
		}
	}
	switch {
	case b.taken >= b.room || b.bytes >= maxRead:
		b.partial++
		return
	case !whole: // leave space for names of other entries
		b.partial++
		b.read(&nameField, name)
	case e.Kind == registry.Tool || e.Kind == registry.Prompt:
		b.read(&nameField, name)
		b.arguments(e)
	default:
		b.read(&nameField, name)
		b.read(&uriField, e.Name)
	}
	if whole {
		b.read(&titleField, e.Title)
		b.read(&descriptionField, e.Description)
	}
	b.read(&serverField, e.Server)
	b.taken += bytesOfPost * len(b.used)
	for _, id := range b.used {
		t := b.sums[id]
		b.sums[id] = 0
		weight := max(1, math.Round(float64(255*t/(t+saturation))))
		b.posts = append(b.posts, post{doc, b.heads[id], uint8(weight)})
		b.heads[id] = int32(len(b.posts) - 1)
	}
}

func (b *builder) arguments(e *registry.Entry) {
	var names, about []string
	said := 0
	take := func(name, of []byte) (more bool) {
		text, _ := rawjson.String(name)
		names = append(names, text)
		if text, ok := rawjson.String(rawjson.Get(of, "description")); ok && said < maxField {
			about, said = append(about, text), said+len(text)
		}
		for v := range rawjson.Elements(rawjson.Get(of, "enum")) {
			if said >= maxField {
				break
			}
			if text, ok := rawjson.String(v); ok {
				about, said = append(about, text), said+len(text)+1
			}
		}
		return len(names) < maxArguments
	}
	if e.Kind == registry.Tool {
		for k, v := range rawjson.Members(rawjson.Path(e.JSON(), "inputSchema", "properties")) {
			if !take(k, v) {
				break
			}
		}
	} else {
		for v := range rawjson.Elements(rawjson.Get(e.JSON(), "arguments")) {
			if !take(rawjson.Get(v, "name"), v) {
				break
			}
		}
	}
	b.read(&argumentField, strings.Join(names, " "))
	b.read(&meaningField, strings.Join(about, " "))
}

func (b *builder) read(f *field, text string) {
	if text == "" {
		return
	}
	if len(text) > maxField {
		text = strings.ToValidUTF8(text[:maxField], "")
	}
	b.bytes += len(text)
	b.field = b.field[:0]
	length := 0
	b.split(text, f.pairs, func(w []byte, how spelling) {
		if how == plain || how == part {
			length++
		}
		if how != joined {
			w = stem(w)
		}
		id, ok := b.ids[string(w)]
		if len(b.used)+len(b.field) >= maxTerms {
			return
		}
		if !ok {
			b.taken += bytesOfTerm + len(w)
			id = int32(len(b.heads))
			b.ids[string(w)] = id
			b.heads = append(b.heads, -1)
			b.sums = append(b.sums, 0)
		}
		b.field = append(b.field, id)
	})
	each := f.weight / (1 - f.bias + f.bias*float32(length)/f.usual)
	for _, id := range b.field {
		if b.sums[id] == 0 {
			b.used = append(b.used, id)
		}
		b.sums[id] += each
	}
}

func (b *builder) finish(docs int) *segment {
	order := make([]string, 0, len(b.ids))
	size := 0
	for t := range b.ids {
		order = append(order, t)
		size += len(t)
	}
	slices.Sort(order)
	s := &segment{
		docs:    docs,
		read:    b.bytes,
		partial: b.partial,
		termEnd: make([]uint32, len(order)),
		letters: make([]uint32, len(order)),
		postEnd: make([]uint32, len(order)),
		posts:   make([]byte, 0, 3*len(b.posts)+len(order)),
		filter:  newFilter(len(order)),
	}
	var terms strings.Builder
	terms.Grow(size)
	for i, t := range order {
		terms.WriteString(t)
		s.termEnd[i] = uint32(terms.Len())
		s.letters[i] = lettersOf(t)
		s.filter.add(hashOf(t))
		if len(t) >= beginning {
			s.filter.add(hashOfBeginning(t))
		}
		id := b.ids[t]
		n := 0
		for at := b.heads[id]; at >= 0; at = b.posts[at].next {
			n++
		}
		s.posts = binary.AppendUvarint(s.posts, uint64(n))
		before := uint32(0)
		for at := b.heads[id]; at >= 0; at = b.posts[at].next {
			p := &b.posts[at]
			s.posts = binary.AppendUvarint(s.posts, uint64(p.doc-before))
			s.posts = append(s.posts, p.weight)
			before = p.doc
		}
		s.postEnd[i] = uint32(len(s.posts))
	}
	s.terms = terms.String()
	s.posts = slices.Clip(slices.Clone(s.posts))
	s.words = s.from(":")
	return s
}

func (s *segment) term(i int) string {
	if i == 0 {
		return s.terms[:s.termEnd[0]]
	}
	return s.terms[s.termEnd[i-1]:s.termEnd[i]]
}

func (s *segment) from(t string) int {
	return sort.Search(len(s.termEnd), func(i int) bool { return s.term(i) >= t })
}

// find returns the number of a term with its hash.
func (s *segment) find(t string, hash uint64) (i int, ok bool) {
	if !s.filter.mayContain(hash) {
		return 0, false
	}
	i = s.from(t)
	return i, i < len(s.termEnd) && s.term(i) == t
}

// postings returns the number of a term's documents, and its posting list for [next].
func (s *segment) postings(term int) (n int, list []byte) {
	from := uint32(0)
	if term > 0 {
		from = s.postEnd[term-1]
	}
	list = s.posts[from:s.postEnd[term]]
	count, w := binary.Uvarint(list)
	return int(count), list[w:]
}

func (s *segment) count(term int) int {
	n, _ := s.postings(term)
	return n
}

// next reads one posting from a list. distance is relative to the previous document.
func next(list []byte) (distance uint32, weight uint8, rest []byte) {
	if list[0] < 0x80 {
		return uint32(list[0]), list[1], list[2:]
	}
	d, w := binary.Uvarint(list)
	return uint32(d), list[w], list[w+1:]
}
