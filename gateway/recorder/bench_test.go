package recorder_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"goblin/gateway/recorder"
)

// BenchmarkRecord measures the share of read loops. The writer works beside it.
func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("answer=%d", size), func(b *testing.B) {
			bed := newBed(nil, filepath.Join(b.TempDir(), "rec"))
			if err := bed.open(func(o *recorder.Options) { o.Max = 64 << 20 }); err != nil {
				b.Fatal(err)
			}
			rec, full := call(1, `{"name":"files_read","arguments":{"size":100}}`, `{"content":[{"type":"text","text":"`+strings.Repeat("x", size)+`"}]}`)
			rec.Request, rec.Response, rec.Wire = full.Request, full.Response, []byte("i7\ns8\ntstdio\n")
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				bed.sink.Record(&rec, full)
			}
			b.StopTimer()
			if err := bed.recorder.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(bed.recorder.Status().Dropped)/float64(b.N), "dropped/op")
		})
	}
}
