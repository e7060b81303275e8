// Package watcher follows the contents of resources and delivers each new one.
//
// [Run] blocks until its context ends. It subscribes, or reads at intervals, and opens
// another session when the gateway exits. Updates during a delivery are merged: only the
// latest content is delivered then. Deliveries never overlap.
package watcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/registry/rawjson"
)

// Pauses after failures. The pause doubles up to the longest one.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	// maxOpens is the number of failed attempts in a row to open another session.
	maxOpens = 10
	// unsubscribeTimeout limits the requests at the end.
	unsubscribeTimeout = 2 * time.Second
)

// Update is a new content of a resource.
type Update struct {
	Time     time.Time
	URI      string // as given
	First    bool   // the content when watching began
	Result   json.RawMessage
	Content  []byte // decoded; several contents follow each other
	Previous []byte // the content delivered before
	Binary   bool
}

// Options configures [Run].
type Options struct {
	URIs []string
	// Every is the interval between reads. 0 subscribes instead.
	Every time.Duration
	// Open opens a session whose notifications go to notify. closing releases it.
	Open func(ctx context.Context, notify func(method string, params json.RawMessage)) (c *mcpclient.Client, closing func(), err error)
	// Deliver receives updates one at a time. An error ends Run.
	Deliver func(ctx context.Context, u *Update) error
	// Warn reports failures that are retried.
	Warn func(format string, args ...any)
}

// NoSubscriptionsError reports a server that refuses to subscribe to a resource.
type NoSubscriptionsError struct {
	URI string
	Err error
}

func (e *NoSubscriptionsError) Error() string {
	return fmt.Sprintf("subscribe to %q: %v", e.URI, e.Err)
}

func (e *NoSubscriptionsError) Unwrap() error { return e.Err }

// ReadError reports a resource that cannot be read when watching begins.
type ReadError struct {
	URI string
	Err error
}

func (e *ReadError) Error() string { return fmt.Sprintf("read %q: %v", e.URI, e.Err) }

func (e *ReadError) Unwrap() error { return e.Err }

// ErrStop makes Run return nil when Deliver returns it.
var ErrStop = errors.New("stop watching")

// Run watches until ctx ends, and returns nil then. It fails if a resource cannot be read
// or subscribed to at the beginning.
func Run(ctx context.Context, o Options) error {
	w := &watch{o: o, last: make(map[string][]byte), dirty: make(map[string]bool), wake: make(chan struct{}, 1)}
	pause, opens := firstPause, 0
	for {
		began := w.delivered
		err := w.session(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrStop):
			return nil
		case w.delivered == 0 || !isLost(err):
			return err
		case w.delivered > began || w.subscribed:
			pause, opens = firstPause, 0
		}
		if opens++; opens > maxOpens {
			return err
		}
		w.subscribed = false
		o.Warn("%v; trying again in %s", err, pause)
		if sleep(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, longestPause)
	}
}

// isLost reports whether another session may work.
func isLost(err error) bool {
	var refused *jsonrpc.Error
	return !errors.As(err, &refused)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type watch struct {
	o          Options
	last       map[string][]byte // delivered content by URI
	delivered  int
	subscribed bool // the last session subscribed to all resources

	mu    sync.Mutex
	dirty map[string]bool // to be read
	wake  chan struct{}   // capacity one
}

// notify marks a resource. An update of another URI, such as of a part of a resource,
// marks all.
func (w *watch) notify(method string, params json.RawMessage) {
	if method != "notifications/resources/updated" {
		return
	}
	uri := rawjson.GetString(params, "uri")
	if slices.Contains(w.o.URIs, uri) {
		w.mark(uri)
	} else {
		w.mark(w.o.URIs...)
	}
}

func (w *watch) mark(uris ...string) {
	w.mu.Lock()
	for _, uri := range uris {
		w.dirty[uri] = true
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns the marked resources in the order of the options.
func (w *watch) take() (uris []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uri := range w.o.URIs {
		if w.dirty[uri] {
			uris = append(uris, uri)
		}
	}
	clear(w.dirty)
	return uris
}

// session watches with one session until it closes.
func (w *watch) session(ctx context.Context) error {
	c, closing, err := w.o.Open(ctx, w.notify)
	if err != nil {
		return err
	}
	defer closing()
	if w.o.Every == 0 {
		defer w.unsubscribe(ctx, c)
		for _, uri := range w.o.URIs {
			if _, err := c.Request(ctx, "resources/subscribe", rawjson.Object("uri", uri), nil); err != nil {
				return &NoSubscriptionsError{uri, err}
			}
		}
	}
	w.subscribed = true
	w.mark(w.o.URIs...)
	var tick <-chan time.Time
	if w.o.Every > 0 {
		ticker := time.NewTicker(w.o.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	pause := firstPause
	var retry <-chan time.Time
	for {
		select {
		case <-w.wake:
		case <-tick:
			w.mark(w.o.URIs...)
		case <-retry:
			w.mark(w.o.URIs...)
		case <-c.Done():
			return mcpclient.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
		retry = nil
		failed, err := w.readAll(ctx, c)
		if err != nil {
			return err
		}
		if failed {
			retry = time.After(pause)
			pause = min(2*pause, longestPause)
		} else {
			pause = firstPause
		}
	}
}

// readAll delivers the marked resources that changed. failed reports whether one could
// not be read; it was read before.
func (w *watch) readAll(ctx context.Context, c *mcpclient.Client) (failed bool, err error) {
	for _, uri := range w.take() {
		result, err := c.Request(ctx, "resources/read", rawjson.Object("uri", uri), nil)
		var refused *jsonrpc.Error
		_, known := w.last[uri]
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && !known:
			return false, &ReadError{uri, err}
		case errors.As(err, &refused):
			w.o.Warn("read %q: %v", uri, err)
			failed = true
			continue
		case err != nil:
			return false, err
		}
		if err := w.deliver(ctx, uri, result); err != nil {
			return false, err
		}
	}
	return failed, nil
}

func (w *watch) deliver(ctx context.Context, uri string, result json.RawMessage) error {
	content, binary, err := decode(result)
	if err != nil {
		return &ReadError{uri, err}
	}
	previous, known := w.last[uri]
	if known && bytes.Equal(previous, content) {
		return nil
	}
	w.last[uri] = content
	w.delivered++
	return w.o.Deliver(ctx, &Update{Time: time.Now(), URI: uri, First: !known, Result: result, Content: content, Previous: previous, Binary: binary})
}

func (w *watch) unsubscribe(ctx context.Context, c *mcpclient.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
	defer cancel()
	for _, uri := range w.o.URIs {
		if _, err := c.Request(ctx, "resources/unsubscribe", rawjson.Object("uri", uri), nil); err != nil {
			return // closing the session unsubscribes too
		}
	}
}
