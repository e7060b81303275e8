package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"goblin/registry/compare"
)

// BenchmarkValues compares texts at the limit of values.
func BenchmarkValues(b *testing.B) {
	rows := func(change func(i int) bool, members, n int) []byte {
		var out strings.Builder
		out.WriteByte('[')
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteByte('{')
			for m := range members {
				v := i*members + m
				if change(i) {
					v = -v
				}
				fmt.Fprintf(&out, `%s"m%d":%d`, map[bool]string{true: ","}[m > 0], m, v)
			}
			out.WriteByte('}')
		}
		out.WriteByte(']')
		return []byte(out.String())
	}
	never := func(int) bool { return false }
	for name, one := range map[string][2][]byte{
		"few changes":    {rows(never, 7, 49_000), rows(func(i int) bool { return i%1000 == 7 }, 7, 49_000)},
		"all different":  {rows(never, 7, 49_000), rows(func(int) bool { return true }, 7, 49_000)},
		"wide objects":   {rows(never, 3000, 128), rows(func(int) bool { return true }, 3000, 127)},
		"one and many":   {rows(never, 390_000, 1), rows(never, 1, 16_000)},
		"a shifted list": {rows(never, 1, 199_000), rows(never, 1, 199_000)[len(`{"m0":0},`)+1:]},
	} {
		a, c := one[0], one[1]
		if c[0] != '[' {
			c = append([]byte("["), c...)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(a) + len(c)))
			for b.Loop() {
				r, err := compare.Values(a, c, compare.Options{})
				if err != nil {
					b.Fatal(err)
				}
				r.Sections()
			}
		})
	}
}
