package lua_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"goblin/meta/lua"
)

func bench(b *testing.B, script string, h *fakeGateway) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		h.requests, h.progress = h.requests[:0], h.progress[:0]
		if _, err := runner.Run(b.Context(), script, h, lua.Limits{Timeout: time.Minute, Calls: 1000}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrivialScript(b *testing.B) { bench(b, `return 1`, newFakeGateway(b)) }

// Scripts run one at a time, so the next process starts between them.
func BenchmarkTrivialScriptPrepared(b *testing.B) {
	h := newFakeGateway(b)
	for b.Loop() {
		b.StopTimer()
		runner.Prepare()
		time.Sleep(100 * time.Millisecond)
		b.StartTimer()
		if _, err := runner.Run(b.Context(), `return 1`, h, lua.Limits{Timeout: time.Minute}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkThousandCalls(b *testing.B) {
	h := newFakeGateway(b)
	h.tools["calculator_add"] = func(context.Context, json.RawMessage) (string, error) {
		return `{"content":[],"structuredContent":{"sum":3}}`, nil
	}
	bench(b, `local s = 0 for i = 1, 1000 do s = s + calculator.add{a=1,b=2}.sum end return s`, h)
}

// About three instructions per round.
func BenchmarkTenMillionInstructions(b *testing.B) {
	bench(b, `local s = 0 for i = 1, 3333333 do s = s + i % 7 end return s`, newFakeGateway(b))
}

func BenchmarkFillingAnArray(b *testing.B) {
	bench(b, `local t = {} for i = 1, 200000 do t[i] = i end return #t`, newFakeGateway(b))
}
