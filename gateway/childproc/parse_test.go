//go:build linux || darwin

package childproc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse: whatever a record holds, no group is named that stands for others,
// and what is written is read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pid":7,"start":8,"session":9,"era":"e","server":"s","command":"c"}` + "\n"))
	f.Add([]byte(`{"pid":1,"start":8,"era":"e"}`))
	f.Add([]byte("   \n{\"pid\":0,\"start\":1,\"era\":\"e\"}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all := parse(text)
		require.LessOrEqual(t, len(all), maxSlots)
		for _, c := range all {
			require.Greater(t, c.PID, 1)
			line, err := c.line()
			if err != nil {
				continue // it is too long: escapes take more space than what they stand for
			}
			require.Len(t, line, slot)
			again := parse(line)
			require.Len(t, again, 1)
			if again[0].Command != "" {
				require.Equal(t, c, again[0])
			}
		}
	})
}
