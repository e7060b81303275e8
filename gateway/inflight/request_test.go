package inflight

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Several requests to the user may overlap, also from nested calls.
func TestHowLongPeopleWereAskedBecauseOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outer := &Request{}
		inner := &Request{Outer: outer}
		waited := func(want time.Duration, calls ...*Request) {
			t.Helper()
			for _, u := range calls {
				require.Equal(t, want, u.PromptTime())
			}
		}
		waited(0, outer, inner)
		inner.Pause()
		time.Sleep(time.Second)
		waited(time.Second, outer, inner)
		inner.Pause() // a second request meanwhile
		time.Sleep(time.Second)
		inner.Resume()
		time.Sleep(time.Second)
		inner.Resume()
		time.Sleep(time.Hour)
		waited(3*time.Second, outer, inner)
		outer.Pause() // a later request of the outer call
		time.Sleep(time.Second)
		outer.Resume()
		waited(4*time.Second, outer)
		waited(3*time.Second, inner)
	})
}
