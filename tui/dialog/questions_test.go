package dialog_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/tui/dialog"
)

func TestMoreQuestionsThanAUserCanAnswerAreRefused(t *testing.T) {
	t.Parallel()
	const most = 32
	q := dialog.NewQuestions()
	woken, ended := make(chan struct{}, 4*most), make(chan error, most)
	q.OnChange(func() { woken <- struct{}{} })
	for range most {
		go func() {
			_, err := q.Ask(t.Context(), "elicitation/create", nil, time.Time{})
			ended <- err
		}()
		<-woken
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := q.Ask(gone, "elicitation/create", nil, time.Time{})
	require.EqualError(t, err, "too many requests are waiting for an answer")
	require.Equal(t, most, q.Len())
	q.Close()
	for range most {
		require.ErrorIs(t, <-ended, dialog.ErrScreenClosed)
	}
	require.Zero(t, q.Len(), "no request must be waiting")
	_, err = q.Ask(gone, "elicitation/create", nil, time.Time{})
	require.ErrorIs(t, err, dialog.ErrScreenClosed)
}
