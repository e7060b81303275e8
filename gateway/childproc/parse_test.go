//go:build linux || darwin

package childproc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse checks that no record names a process group with a special meaning, and that
// written records can be read.
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
				continue // too long: escapes make the record longer
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
