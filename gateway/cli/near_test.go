package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearestNames(t *testing.T) {
	names := []string{"notes_add_note", "notes_edit_note", "clock_time_in", "mcp://notes/note:///haiku", "mcp://clock/clock://now", "list"}
	tests := []struct {
		wrong string
		want  []string
	}{
		{"notes_ad_note", []string{"notes_add_note"}},
		{"notes_note", []string{"notes_add_note", "notes_edit_note"}},
		{"time_in", []string{"clock_time_in"}},
		{"NOTE:///haik", []string{"mcp://notes/note:///haiku"}},
		{"mcp://nope/x", nil},
		{"lsit", []string{"list"}},
		{"", nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, nearest(tt.wrong, names), tt.wrong)
	}
}
