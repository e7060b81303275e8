package resourcehistory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/compare"
	"goblin/registry/rawjson"
	"goblin/tui/dialog"
	"goblin/tui/uicontext"
)

// maxRows is the maximum number of rows of the journal in one View.
const maxRows = 500

// row is a read, an update or a subscription.
type row struct {
	key    string
	what   string // such as "read"
	client string
	result string // how it ended
	failed bool
	change string // of a read, against the read before
	at     time.Time
	took   time.Duration
	size   int64
	*content
	inv *registry.Invocation    // by this UI, or nil
	rec *registry.TrafficRecord // of the journal, or nil
}

// content is the answer to a read.
type content struct {
	answer  []byte // result, or error object; nil if unknown
	isError bool
	cut     bool
	hash    uint64 // 0 if unknown
	value   float64
	path    *string // of value; nil before the first search
}

var seed = maphash.MakeSeed()

func newContent(answer []byte, isError, cut bool) *content {
	c := &content{answer: answer, isError: isError, cut: cut, value: math.NaN()}
	if len(answer) > 0 && !isError && !cut {
		text := answer
		if contents := rawjson.Get(answer, "contents"); contents != nil {
			text = contents
		}
		c.hash = maphash.Bytes(seed, text)
	}
	return c
}

// findValue evaluates a path, once.
func (c *content) findValue(path string) {
	if c.path != nil && *c.path == path || c.answer == nil {
		return
	}
	c.value, c.path = math.NaN(), &path
	if !c.isError && !c.cut {
		c.value = numberAt(textOf(c.answer), path)
	}
}

// textOf returns the text of the first content, or "".
func textOf(answer []byte) string {
	for c := range rawjson.Elements(rawjson.Get(answer, "contents")) {
		return rawjson.GetString(c, "text")
	}
	return ""
}

// numberAt returns the finite number at a JSONPath in text, or NaN. A string may hold the
// number. With an empty path the whole text is the number.
func numberAt(text, path string) float64 {
	if path != "" {
		d, err := dialog.ReadDocument([]byte(text))
		if err != nil {
			return math.NaN()
		}
		found, n, err := dialog.FindInDocument(d, len(text), path)
		if err != nil || n != 1 {
			return math.NaN()
		}
		text = string(found)
		if s, ok := rawjson.String(found); ok {
			text = s
		}
	}
	const longest = 400 // digits of the largest numbers, and some
	v, err := strconv.ParseFloat(strings.TrimSpace(text[:min(len(text), longest)]), 64)
	if err != nil || len(text) > longest || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// Limits of suggested paths, in bytes.
const (
	maxSuggested = 64 << 10 // of the text
	maxName      = 64       // of each member; the search refuses long paths
)

// suggestPath returns the JSONPath of the first number in nested objects of a text, or "".
func suggestPath(text string) string {
	if len(text) > maxSuggested || !json.Valid([]byte(text)) {
		return ""
	}
	var find func(value []byte, path compare.Path) string
	find = func(value []byte, path compare.Path) string {
		text := string(value)
		if s, ok := rawjson.String(value); ok {
			text = s
		}
		switch {
		case len(path) > 0 && !math.IsNaN(numberAt(text, "")):
			return path.String()
		case !rawjson.IsObject(value) || len(path) == 8:
			return ""
		}
		for key, member := range rawjson.Members(value) {
			if name, ok := rawjson.String(key); ok && len(name) <= maxName {
				if found := find(member, append(path, compare.Step{Name: name})); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return find([]byte(strings.TrimSpace(text)), nil)
}

// contentSize returns the size of the contents of an answer, without the JSON around them.
func contentSize(answer []byte) (n int64) {
	found := false
	for c := range rawjson.Elements(rawjson.Get(answer, "contents")) {
		found = true
		if blob := rawjson.GetString(c, "blob"); blob != "" {
			n += int64(len(blob) / 4 * 3)
			continue
		}
		n += int64(len(rawjson.GetString(c, "text")))
	}
	if !found {
		return int64(len(answer))
	}
	return n
}

// reader collects the records of one resource. It belongs to one command at a time.
type reader struct {
	journal *registry.TrafficJournal
	item    uicontext.Item
	session string // of this UI
	next    uint64
	records []*row // oldest first
	own     map[*registry.Invocation]*row
}

var methods = map[string]string{
	"resources/read": "read", "resources/subscribe": "subscribe", "resources/unsubscribe": "unsubscribe",
	"notifications/resources/updated": "update",
}

func (r *reader) isAbout(rec *registry.TrafficRecord) bool {
	it := r.item
	return rec.Server == it.Server && methods[rec.Method] != "" && rec.Name != "" &&
		(rec.Original == it.Name || rec.Name == it.Listed || rec.Name == it.Name || rec.Name == it.Server+"/"+it.Name)
}

// read adds the new records of the journal.
func (r *reader) read() {
	if r.journal.Stats().Next <= r.next {
		return
	}
	recs := r.journal.Window(r.next, -1)
	for i := range recs {
		rec := &recs[i]
		r.next = rec.Seq + 1
		if !r.isAbout(rec) {
			continue
		}
		if rec.Count > 1 { // replaces the record of its predecessors
			r.records = slices.DeleteFunc(r.records, func(o *row) bool { return cmp.Or(o.rec.First, o.rec.Seq) == rec.First })
		}
		own := *rec // the others need not stay in memory
		r.records = append(r.records, r.rowOf(&own))
		r.limit()
	}
}

func (r *reader) rowOf(rec *registry.TrafficRecord) *row {
	one := &row{
		key: fmt.Sprint("record ", cmp.Or(rec.First, rec.Seq)), what: methods[rec.Method], client: rec.Client, at: rec.Time,
		took: rec.Duration - rec.UserWait, rec: rec, result: "ok",
	}
	if rec.Session == r.session && rec.Session != "" {
		one.client = "you"
	}
	switch {
	case rec.Status == registry.StatusNotification:
		one.result, one.took = "", 0
		if !rec.Last.IsZero() {
			one.at = rec.Last
		}
		if rec.Count > 1 {
			one.result = fmt.Sprintf("%d times", rec.Count)
		}
		if rec.Receivers > 0 {
			one.client = fmt.Sprintf("%d clients", rec.Receivers)
		}
		return one
	case rec.Status != "success":
		one.result, one.failed = rec.Status, rec.Status == "failure"
	}
	if one.what != "read" {
		return one
	}
	full, ok := r.journal.Record(rec.Seq)
	if !ok || len(full.Response) == 0 {
		one.content, one.size = newContent(nil, false, false), int64(rec.ResponseSize)
		return one
	}
	one.content = newContent(full.Response, rec.Status != "success", len(full.Response) < full.ResponseSize)
	if one.size = contentSize(full.Response); one.cut {
		one.size = int64(rec.ResponseSize)
	}
	return one
}

// limit drops the oldest records, and the contents of older ones.
func (r *reader) limit() {
	if n := len(r.records); n > maxRows {
		r.records = slices.Delete(r.records, 0, n-maxRows)
	}
	contents, size := 0, 0
	for _, one := range slices.Backward(r.records) {
		if one.content == nil || one.answer == nil {
			continue
		}
		contents++
		if size += len(one.answer); contents > maxContents || size > maxBytes && contents > 1 {
			one.answer = nil
		}
	}
}

// rows combines the records with this UI's own reads, the newest first.
func (r *reader) rows(reads []*registry.Invocation, path string) []*row {
	r.read()
	own := make(map[*registry.Invocation]*row, len(reads))
	var all []*row
	for _, inv := range reads {
		one := r.own[inv]
		if one == nil {
			one = rowOfRead(inv)
		}
		own[inv] = one
		all = append(all, one)
	}
	r.own = own
	for _, one := range r.records {
		if one.what == "read" && one.client == "you" && slices.ContainsFunc(reads, func(inv *registry.Invocation) bool { return covers(inv, one.rec) }) {
			continue
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b *row) int { return a.at.Compare(b.at) })
	var before *content
	out := make([]*row, len(all))
	for i, one := range all {
		shown := *one // rows that are shown never change
		out[len(out)-1-i] = &shown
		if one.content == nil {
			continue
		}
		one.findValue(path)
		kept := *one.content
		shown.content, shown.change = &kept, changeOf(before, one.content)
		if one.hash != 0 {
			before = one.content
		}
	}
	return out
}

func changeOf(before, now *content) string {
	switch {
	case now.hash == 0 && now.cut:
		return "truncated"
	case now.hash == 0:
		return ""
	case before == nil:
		return "first"
	case before.hash == now.hash:
		return "equal"
	}
	return "changed"
}

// covers reports whether a record is the request of a read by this UI, which measured it
// from outside.
func covers(inv *registry.Invocation, rec *registry.TrafficRecord) bool {
	const tolerance = time.Millisecond
	return !rec.Time.Before(inv.Time.Add(-tolerance)) && !rec.Time.Add(rec.Duration).After(inv.Time.Add(inv.Duration+tolerance))
}

func rowOfRead(inv *registry.Invocation) *row {
	one := &row{key: fmt.Sprint("read ", inv.Seq), what: "read", client: "you", result: "ok", at: inv.Time, took: inv.Duration, inv: inv}
	if inv.Error != "" {
		text, err := json.Marshal(map[string]any{"code": inv.ErrorCode, "message": inv.Error})
		if err != nil {
			text = []byte("{}") // strings and numbers always encode
		}
		one.result, one.failed, one.content = "failure", true, newContent(text, true, false)
		return one
	}
	one.content, one.size = newContent(inv.Result, false, false), contentSize(inv.Result)
	return one
}
