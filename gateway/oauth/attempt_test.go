package oauth

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A caller that sees a question after another caller's user agreed has nothing to ask: its
// user may have been shown the page already.
func TestAnAnsweredQuestionIsPutToNoUser(t *testing.T) {
	agreed := make(chan struct{})
	close(agreed)
	err := new(attempt).answer(t.Context(), &pendingQuestion{confirmed: agreed}, UserPrompts{ConfirmSecret: func(context.Context, SecretQuestion) error {
		t.Error("asked")
		return nil
	}})
	require.NoError(t, err)
}
