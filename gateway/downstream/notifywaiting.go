package downstream

import (
	"context"
	"strconv"
	"sync"
	"time"

	"goblin/registry/rawjson"
)

// Clients are notified after firstNoticeDelay and then at each noticeInterval.
const (
	firstNoticeDelay = 250 * time.Millisecond
	noticeInterval   = 2 * time.Second
)

// MaxToken is the maximum size of a progress token in bytes. Each notification repeats
// it, on read loops that other clients share.
const MaxToken = 1 << 10

type requestKey struct{}

// NotifyWaiting sends text as progress to the client of ctx's request until stop is
// called. Clients then extend their timeouts.
func NotifyWaiting(ctx context.Context, text string) (stop func()) {
	return notifyWaiting(ctx, text, firstNoticeDelay)
}

// NotifyUserWait is NotifyWaiting without a delay, for waits that take seconds at least.
func NotifyUserWait(ctx context.Context, text string) (stop func()) {
	return notifyWaiting(ctx, text, 0)
}

func notifyWaiting(ctx context.Context, text string, delay time.Duration) (stop func()) {
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
	timer = time.AfterFunc(delay, func() {
		mu.Lock()
		defer mu.Unlock()
		if token := x.ProgressToken(first); !over && token != nil {
			words++
			// Progress must increase; the server's own may start at zero.
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
