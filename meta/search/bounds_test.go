package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/meta/search"
	"goblin/registry"
)

// wordyTools returns n tools with descriptions of size bytes, in unique words.
func wordyTools(n, size int, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 0))
	items := make([][]byte, n)
	for i := range items {
		var text strings.Builder
		for text.Len() < size {
			fmt.Fprintf(&text, "%c%07x ", 'g'+byte(i%16), r.Uint32()>>4)
		}
		items[i] = fmt.Appendf(nil, `{"name":"wordy%d","description":%q,"inputSchema":{"type":"object"}}`, i, text.String())
	}
	return items
}

// searchLogs returns the log lines of the search.
func searchLogs(reg *registry.Registry) (lines []string) {
	for _, rec := range reg.Logs().Window(0, -1) {
		if strings.HasPrefix(rec.Text, "search: ") {
			lines = append(lines, rec.Server+" "+rec.Text)
		}
	}
	return lines
}

func TestAListThatIsTooLongIsFoundByItsNames(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"wordy", "small"}})
	setList(t, reg, "small", registry.Tool, object{"name": "invoice", "description": "of the supplier"})
	x := search.New(reg)
	search.BoundList(x, 1<<20)
	for seed := range uint64(2) {
		const n = 250
		reg.SetList("wordy", registry.Tool, wordyTools(n, 4000, seed)) // with descriptions longer than clients show
		_, total := find(t, x, search.Query{Text: "wordy"})
		require.Equal(t, n, total)
		size, read := search.Size(x)
		require.LessOrEqual(t, size, 1<<20*11/10)
		require.Less(t, read, n*4000*3/4)
		require.Len(t, searchLogs(reg), 1, "once")
	}
	require.Contains(t, searchLogs(reg)[0], "wordy search: too much text: ")
	first, _ := find(t, x, search.Query{Text: "supplier"})
	require.Equal(t, []string{"small_invoice"}, first)
}

func TestALongListOfUsualTextsIsReadWhole(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	const part = 20 // of 100,000 entries and of their limit
	require.Empty(t, reg.SetList("s", registry.Resource, documents(0, 100_000/part)))
	x := search.New(reg)
	search.BoundList(x, search.MaxList/part)
	_, total := find(t, x, search.Query{Text: "words"})
	require.Equal(t, 100_000/part, total)
	require.Empty(t, searchLogs(reg))
}

func TestHoweverManyListsThereAreTheIndexIsBounded(t *testing.T) {
	all, x := 0, search.New(registry.New(registry.Options{}))
	for range 1000 {
		all += search.Room(x, all)
	}
	require.LessOrEqual(t, all, search.MaxAll)
	require.Equal(t, search.MaxList, search.Room(x, 0))
	require.Less(t, search.Room(x, search.MaxAll/2), search.MaxList)
	require.Zero(t, search.Room(x, 2*search.MaxAll))
}

// A list that changes all the time is read as its credit allows. Removed entries are not
// found meanwhile.
func TestAListThatChangesAllTheTimeIsReadSlowly(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"busy", "calm"}})
	now := time.Unix(1000, 0)
	x := search.New(reg)
	const n, each = 100, 1000
	search.Throttle(x, 2*n*each, func() time.Time { return now })
	fill := func(round int) {
		items := make([]object, n)
		for i := range items {
			items[i] = object{"name": fmt.Sprintf("%s_%d", noun(round), i), "description": fmt.Sprintf("round%d ", round) + strings.Repeat("text ", each/5)}
		}
		setList(t, reg, "busy", registry.Prompt, items...)
	}
	read := 0
	for round := range 50 {
		fill(round)
		if round%7 == 3 { // removing the list does not reset the credit
			require.Empty(t, reg.SetList("busy", registry.Prompt, nil))
			find(t, x, search.Query{Text: "text"})
			fill(round)
		}
		found, total := find(t, x, search.Query{Text: fmt.Sprintf("round%d", round), Limit: n})
		if total > 0 {
			require.Equal(t, n, total)
			read++
		}
		for _, listed := range found {
			require.Contains(t, listed, noun(round), "every result is listed")
		}
	}
	require.LessOrEqual(t, read, 4)
	require.GreaterOrEqual(t, read, 1)
	require.True(t, search.UpToDate(x), "nothing may be read now")

	setList(t, reg, "calm", registry.Prompt, object{"name": "calm"})
	_, total := find(t, x, search.Query{Text: "calm"})
	require.NotZero(t, total, "other lists are read at once")

	now = now.Add(time.Hour)
	require.False(t, search.UpToDate(x))
	_, total = find(t, x, search.Query{Text: "round49"})
	require.Equal(t, n, total)
}

func TestReadingEndsWithItsContext(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"wordy"}})
	reg.SetList("wordy", registry.Tool, wordyTools(100, 4000, 1))
	x := search.New(reg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Search(ctx, search.Query{Text: "wordy"})
	require.ErrorIs(t, err, context.Canceled)
	_, total := find(t, x, search.Query{Text: "wordy"})
	require.Equal(t, 100, total)
}
