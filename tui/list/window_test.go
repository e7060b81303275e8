package list_test

import (
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/tui/keys"
	"goblin/tui/list"
)

// visible returns the first and last visible row and the cursor.
func visible(w *list.Window) [3]int {
	from, to := w.Visible()
	return [3]int{from, to - 1, w.Cursor()}
}

func TestWindowKeepsTheCursorVisible(t *testing.T) {
	t.Parallel()
	w := &list.Window{}
	w.Reset(20)
	w.Resize(20, 5)
	for _, step := range []struct {
		do   func(keys.Scroller)
		want [3]int
	}{
		{func(s keys.Scroller) { s.Scroll(3) }, [3]int{0, 4, 3}},
		{func(s keys.Scroller) { s.Page(1) }, [3]int{4, 8, 8}},
		{keys.Scroller.Bottom, [3]int{15, 19, 19}},
		{func(s keys.Scroller) { s.Scroll(1) }, [3]int{15, 19, 19}},
		{func(s keys.Scroller) { s.Page(-0.5) }, [3]int{15, 19, 17}},
		{keys.Scroller.Top, [3]int{0, 4, 0}},
	} {
		step.do(list.Cursor{List: w})
		require.Equal(t, step.want, visible(w))
	}
	w.Resize(3, 5)
	require.Equal(t, [3]int{0, 2, 0}, visible(w))
}

func TestWindowScrollsWithoutTheCursor(t *testing.T) {
	t.Parallel()
	w := &list.Window{}
	w.Resize(20, 5)
	w.Page(2)
	require.Equal(t, [3]int{10, 14, 10}, visible(w))
	w.Bottom()
	require.Equal(t, [3]int{15, 19, 15}, visible(w))
	w.Scroll(-1)
	require.Equal(t, [3]int{14, 18, 15}, visible(w))
	w.Top()
	require.Equal(t, [3]int{0, 4, 4}, visible(w))
}

func TestWindowTakesClicksOnItsRowsOnly(t *testing.T) {
	t.Parallel()
	w := &list.Window{}
	w.Resize(20, 5)
	click := func(x, y int) bool {
		return w.Mouse(tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 2)
	}
	require.True(t, click(0, 3))
	require.Equal(t, 1, w.Cursor())
	require.False(t, click(0, 1), "above")
	require.False(t, click(0, 7), "below")
	require.False(t, click(-1, 3), "beside")
	require.Equal(t, 1, w.Cursor())
	require.False(t, w.Mouse(tea.MouseMsg{Button: tea.MouseButtonWheelDown}, 2), "the wheel moves the cursor")
	require.Equal(t, 4, w.Cursor())
}
