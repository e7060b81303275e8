package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target receives load: a server, or Goblin through one transport.
type target struct {
	name string
	tool string
	// load keeps window calls in flight for d and returns the duration of each.
	load func(window int, params string, size int, d time.Duration) ([]time.Duration, error)
	pids []int // processes whose processor time is measured
	// padding is the size of a further argument, in bytes.
	padding int
	// judge compares a measurement with its budget. It may be nil.
	judge func(*report, measurement) string

	latency []time.Duration
	rate    []float64 // calls per second, per turn
	cpu     time.Duration
	// switches counts how often a thread of the processes stopped running, voluntarily or
	// not.
	switches int
}

func (t *target) turn(window, size int, d time.Duration) error {
	params := fmt.Sprintf(`{"name":%q,"arguments":{"size":%d,"padding":%q}}`, t.tool, size, strings.Repeat("p", t.padding))
	cpu, switches, begin := t.spent(), t.switched(), time.Now()
	took, err := t.load(window, params, size, d)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	t.rate = append(t.rate, float64(len(took))/time.Since(begin).Seconds())
	t.latency = append(t.latency, took...)
	t.cpu += t.spent() - cpu
	t.switches += t.switched() - switches
	return nil
}

func (t *target) switched() (all int) {
	for _, pid := range t.pids {
		all += contextSwitches(pid)
	}
	return all
}

func (t *target) spent() (all time.Duration) {
	for _, pid := range t.pids {
		all += processorTime(pid)
	}
	return all
}

func (t *target) reset() { t.latency, t.rate, t.cpu, t.switches = nil, nil, 0, 0 }

// stream sends and receives in one goroutine, so that the client is no bottleneck.
// Requests are far smaller than a pipe's buffer.
func stream(p *client) func(int, string, int, time.Duration) ([]time.Duration, error) {
	const slots = 64
	round := 1 << 14 // above the client's other ids
	return func(window int, params string, size int, d time.Duration) ([]time.Duration, error) {
		var began [slots]time.Time
		send := func(slot int) error {
			round++ // ids are never reused
			id := round*slots + slot
			began[slot] = time.Now()
			return p.SendAs(id, "tools/call", params)
		}
		for slot := range window {
			if err := send(slot); err != nil {
				return nil, err
			}
		}
		var took []time.Duration
		end := time.Now().Add(d)
		for open := window; open > 0; {
			answer, err := p.Receive()
			if err != nil {
				return nil, err
			}
			id, err := idOf(answer, size)
			if err != nil {
				return nil, err
			}
			now, slot := time.Now(), id%slots
			took = append(took, now.Sub(began[slot]))
			if now.After(end) {
				open--
			} else if err := send(slot); err != nil {
				return nil, err
			}
		}
		return took, nil
	}
}

var idMember = []byte(`"id":`)

func idOf(answer []byte, size int) (int, error) {
	_, rest, found := bytes.Cut(answer[:min(len(answer), 100)], idMember)
	if !found { // the TypeScript SDK writes the id last
		_, rest, _ = bytes.Cut(answer[max(len(answer)-100, 0):], idMember)
	}
	end := bytes.IndexAny(rest, ",}")
	id, err := strconv.Atoi(string(rest[:max(end, 0)]))
	if err != nil || len(answer) < size {
		return 0, fmt.Errorf("odd answer of %d bytes: %.200s", len(answer), answer)
	}
	return id, nil
}

type web struct {
	url     string
	session string
	client  *http.Client
}

func newWeb(url string, http2 bool) (*web, error) {
	w := &web{url: url, client: httpClient(http2)}
	if _, err := w.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + `}`); err != nil {
		return nil, err
	}
	if _, err := w.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return nil, err
	}
	_, err := w.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	return w, err
}

func (w *web) request(method string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequest(method, w.url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	return w.client.Do(r)
}

func (w *web) post(body string) ([]byte, error) {
	answer, err := w.request(http.MethodPost, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices || isFailure(text) {
		return nil, fmt.Errorf("status %s: %.500s", answer.Status, text)
	}
	if id := answer.Header.Get("Mcp-Session-Id"); id != "" && w.session == "" {
		w.session = id
	}
	return text, nil
}

func (w *web) load(window int, params string, size int, d time.Duration) ([]time.Duration, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		took  []time.Duration
		fault error
	)
	end := time.Now().Add(d)
	for slot := range window {
		wg.Go(func() {
			var own []time.Duration
			var err error
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, slot+3, params)
			for begin := time.Now(); err == nil && (len(own) == 0 || begin.Before(end)); begin = time.Now() {
				var answer []byte
				if answer, err = w.post(body); err == nil && len(answer) < size {
					err = fmt.Errorf("odd answer of %d bytes: %.200s", len(answer), answer)
				}
				own = append(own, time.Since(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			if err != nil {
				fault = err
			}
		})
	}
	wg.Wait()
	return took, fault
}
