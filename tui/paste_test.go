package tui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bubble Tea alone needs minutes per megabyte.
func TestAPastedMegabyteKeepsTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	_, _, term, _ := startUI(t, newBackend(), nil)
	term.await(t, "file:///one")
	_, err := term.keys.Write([]byte("\x1b[200~" + strings.Repeat("q", 1<<20) + "\x1b[201~:xq\x1b[200~zj\x1b[201~vk"))
	require.NoError(t, err)
	term.await(t, "xqzjvk")
}
