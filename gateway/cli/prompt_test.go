package cli

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAQuestionEndsWithTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, never := io.Pipe()
	defer never.Close()
	cancel()
	_, err := (&App{In: in, Err: io.Discard}).Ask(ctx, "Which?")
	require.ErrorIs(t, err, context.Canceled)
}
