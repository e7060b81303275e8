package downstream

import (
	"context"
	"strconv"
	"sync"
	"time"

	"goblin/registry/rawjson"
)

// A client is notified of a wait after firstNoticeDelay, and then every noticeInterval.
const (
	firstNoticeDelay = 250 * time.Millisecond
	noticeInterval   = 2 * time.Second
)

// MaxToken is the longest progress token, in bytes, for which there is progress: each
// notification repeats it, those of servers on a read loop that other clients share.
const MaxToken = 1 << 10

type requestKey struct{}

// NotifyWaiting tells the client of the request whose context ctx is, or is from, what it waits
// for, as progress, if it wants any: clients wait longer then. stop must be called.
func NotifyWaiting(ctx context.Context, text string) (stop func()) {
	x, ok := ctx.Value(requestKey{}).(*Request)
	if !ok {
		return func() {}
	}
	first := progressToken(x.Params())
	if first == nil || len(first) > MaxToken {
		return func() {}
	}
	var (
		mu    sync.Mutex
		over  bool
		timer *time.Timer
	)
	words := 0
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(firstNoticeDelay, func() {
		mu.Lock()
		defer mu.Unlock()
		if token := x.ProgressToken(first); !over && token != nil {
			words++
			// It has to rise, and the server's own may begin with zero.
			params := append([]byte(`{"progressToken":`), token...)
			params = append(params, `,"progress":`...)
			params = strconv.AppendFloat(params, -0.001/float64(words), 'f', -1, 64)
			params = append(params, `,"message":`...)
			params = append(rawjson.AppendString(params, text), '}')
			x.Notify("progress:"+string(token), "notifications/progress", params)
			timer.Reset(noticeInterval)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
