package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSessionsAreListedOldestFirst(t *testing.T) {
	now := time.Unix(100, 0)
	r := New(Options{Now: func() time.Time { return now }})
	require.Empty(t, r.Sessions())
	ch := r.Watch(t.Context(), Sessions)
	r.SetSession(Session{ID: "b", Client: "late", Since: time.Unix(9, 0)})
	r.SetSession(Session{ID: "c"})
	r.SetSession(Session{ID: "a", Client: strings.Repeat("x", 2*maxField), Since: time.Unix(9, 0), Screen: true})
	r.SetSession(Session{}) // without an ID
	require.Equal(t, Sessions, <-ch)
	ids := ""
	for _, s := range r.Sessions() {
		ids += s.ID
		require.LessOrEqual(t, len(s.Client), maxField)
	}
	require.Equal(t, "abc", ids)
	require.True(t, r.Sessions()[0].Screen)
	require.Equal(t, now, r.Sessions()[2].Since)

	now = now.Add(time.Hour)
	r.SetSession(Session{ID: "c", Protocol: "2025-11-25"})
	last := r.Sessions()[2]
	require.Equal(t, "c 2025-11-25 100", fmt.Sprint(last.ID, " ", last.Protocol, " ", last.Since.Unix()), "replaced, with the old start time")
	require.Equal(t, Sessions, <-ch)
	r.DropSession("nobody")
	require.Empty(t, ch)
	r.DropSession("a")
	require.Equal(t, Sessions, <-ch)
	require.Len(t, r.Sessions(), 2)
}
