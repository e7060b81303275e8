package list_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
)

// finish runs a command of a table and all that follow from it.
func finish(t testing.TB, cmd tea.Cmd) {
	t.Helper()
	for cmd != nil {
		done, ok := cmd().(keys.FuncMsg)
		require.True(t, ok)
		cmd = done()
	}
}

// Sorting runs in a command while the old order is drawn. A frame reads visible rows only.
func TestManyRowsAreSortedAndDrawnWithoutReadingThem(t *testing.T) {
	t.Parallel()
	const n = 20_000
	number := func(row int32) int { return int(row) * 7919 % n }
	reads := 0
	text := func(i int) string {
		reads++
		return fmt.Sprintf("row %05d", number(int32(i)))
	}
	table := list.New(context.Background(), time.Now, text, text, func([]int) []list.Field { return nil })
	table.SetColumns(list.Column[int]{Name: "row", Text: text}, list.Column[int]{Name: "again", Priority: 1, MinWidth: 4, Text: text})
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	finish(t, table.Refresh(0, func() []int { return rows }, func() tea.Cmd { return nil }))
	var head string
	draw := func() {
		reads = 0
		head = table.Grid(theme.New(theme.Options{Theme: "none"}), 60, 30, true)[0]
		require.Less(t, reads, 30*5)
	}

	draw()
	require.Equal(t, "  row       again", strings.TrimRight(ansi.Strip(head), " "))
	reads = 0
	cmd := table.Sort("row")
	require.NotNil(t, cmd)
	require.Less(t, reads, 10)
	draw()
	require.Equal(t, int32(0), table.Matches[0], "not sorted yet")
	finish(t, cmd)
	require.True(t, slices.IsSortedFunc(table.Matches, func(a, b int32) int { return number(a) - number(b) }))
	reads = 0
	finish(t, table.Sort("row"))
	require.Less(t, reads, 10, "reversing compares nothing")
	require.Equal(t, n-1, number(table.Matches[0]))
	draw()
}
