package oauth

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The question was answered for another caller. Its user may have seen the page already.
func TestAnAnsweredQuestionIsPutToNoUser(t *testing.T) {
	agreed := make(chan struct{})
	close(agreed)
	err := new(attempt).answer(t.Context(), &pendingQuestion{confirmed: agreed}, UserPrompts{ConfirmSecret: func(context.Context, SecretQuestion) error {
		t.Error("asked")
		return nil
	}})
	require.NoError(t, err)
}
