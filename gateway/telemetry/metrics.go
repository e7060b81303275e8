package telemetry

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxMIMETypes limits the label mime_type.
const maxMIMETypes = 64

// Metrics holds the Prometheus series of one gateway. All methods are safe for concurrent
// use and never block. Label values are limited: methods that Goblin serves, servers of
// the config, the first 64 MIME types and "other".
type Metrics struct {
	registry      *prometheus.Registry
	requests      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	reads         *prometheus.CounterVec
	subscriptions *prometheus.GaugeVec
	sessions      *prometheus.GaugeVec
	up            *prometheus.GaugeVec
	sleeping      *prometheus.GaugeVec
	restarts      *prometheus.CounterVec
	entries       *prometheus.GaugeVec
	embeddings    prometheus.Counter

	// series caches requests' series: a lookup by labels is slower than counting.
	series     atomic.Pointer[map[seriesKey]*series]
	lastSeries atomic.Pointer[series] // most requests equal the previous one

	mu    sync.Mutex
	mimes map[string]string
}

type seriesKey struct {
	method, server string
	ok             bool
}

type series struct {
	key      seriesKey
	requests prometheus.Counter
	duration prometheus.Observer
}

// NewMetrics includes series of the Go runtime and the process.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_requests_total", Help: "Requests of clients, by method, server and outcome.",
		}, []string{"method", "server_id", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcp_request_duration_seconds", Help: "Time from a client's request to its answer, without waits for the user or for the server's start.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"method", "server_id"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_resource_reads_total", Help: "Reads of servers' resources.",
		}, []string{"server_id", "mime_type", "status"}),
		subscriptions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_resource_subscriptions_active", Help: "Subscriptions of clients.",
		}, []string{"server_id"}),
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_sessions_active", Help: "Client sessions.",
		}, []string{"transport"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_server_up", Help: "1 while the server is connected.",
		}, []string{"server_id"}),
		sleeping: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_server_sleeping", Help: "1 while the server is idle (stopped until it is used).",
		}, []string{"server_id"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_server_restarts_total", Help: "Reconnections to the server.",
		}, []string{"server_id"}),
		entries: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_catalog_entries", Help: "Entries that clients see.",
		}, []string{"kind", "server_id"}),
		embeddings: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcp_search_embeddings_failed_total", Help: "Failed requests for embeddings; the search used words only.",
		}),
		mimes: make(map[string]string, maxMIMETypes),
	}
	m.registry.MustRegister(m.requests, m.duration, m.reads, m.subscriptions, m.sessions, m.up, m.sleeping, m.restarts, m.entries, m.embeddings,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// SetUsage sets the source of usage counters. tool is "" for a client's calls. Call it
// once.
func (m *Metrics) SetUsage(read func(yield func(server, tool, client string, calls, errors, bytes uint64))) {
	m.registry.MustRegister(usageCollector(read))
}

type usageCollector func(yield func(server, tool, client string, calls, errors, bytes uint64))

var (
	toolCalls   = prometheus.NewDesc("mcp_tool_calls_total", "Calls of tools, by server, tool and outcome.", []string{"server_id", "tool", "status"}, nil)
	toolBytes   = prometheus.NewDesc("mcp_tool_answer_bytes_total", "Bytes of tools' answers.", []string{"server_id", "tool"}, nil)
	clientCalls = prometheus.NewDesc("mcp_client_calls_total", "Calls of tools, by client and outcome.", []string{"client", "status"}, nil)
)

// Describe implements [prometheus.Collector].
func (t usageCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- toolCalls
	ch <- toolBytes
	ch <- clientCalls
}

// Collect implements [prometheus.Collector].
func (t usageCollector) Collect(ch chan<- prometheus.Metric) {
	seen := make(map[[3]string]bool) // names may become equal as valid UTF-8
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	t(func(server, tool, client string, calls, errors, bytes uint64) {
		tool, client = strings.ToValidUTF8(tool, "\uFFFD"), strings.ToValidUTF8(client, "\uFFFD")
		k := [3]string{server, tool, client}
		if seen[k] {
			return
		}
		seen[k] = true
		if tool == "" {
			count(clientCalls, calls-errors, client, StatusLabel(true))
			count(clientCalls, errors, client, StatusLabel(false))
			return
		}
		count(toolCalls, calls-errors, server, tool, StatusLabel(true))
		count(toolCalls, errors, server, tool, StatusLabel(false))
		count(toolBytes, bytes, server, tool)
	})
}

// Handler serves the series in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// StatusLabel returns "success" or "failure".
func StatusLabel(ok bool) string {
	if ok {
		return "success"
	}
	return "failure"
}

// AddEmbeddingsFailure counts a failed request for embeddings.
func (m *Metrics) AddEmbeddingsFailure() { m.embeddings.Inc() }

// addRequest counts an answered request. server may be "". took excludes waits for the
// user and for the server's start.
func (m *Metrics) addRequest(method, server string, ok bool, took time.Duration) {
	s := m.findSeries(seriesKey{method, server, ok})
	s.requests.Inc()
	s.duration.Observe(took.Seconds())
}

// addUntimed counts a cancelled or abandoned request, or one that a rule stopped, delayed
// or answered, without its duration.
func (m *Metrics) addUntimed(method, server string, ok bool) {
	m.findSeries(seriesKey{method, server, ok}).requests.Inc()
}

func (m *Metrics) findSeries(o seriesKey) *series {
	if s := m.lastSeries.Load(); s != nil && s.key == o {
		return s
	}
	known := m.series.Load()
	if known != nil {
		if s := (*known)[o]; s != nil {
			m.lastSeries.Store(s)
			return s
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[seriesKey]*series)
	if known = m.series.Load(); known != nil {
		maps.Copy(all, *known)
	}
	o.method, o.server = strings.Clone(o.method), strings.Clone(o.server)
	all[o] = &series{o, m.requests.WithLabelValues(o.method, o.server, StatusLabel(o.ok)), m.duration.WithLabelValues(o.method, o.server)}
	m.series.Store(&all)
	return all[o]
}

// AddRead counts a resource read. mime is of the first content, or "".
func (m *Metrics) AddRead(server, mime string, ok bool) {
	m.reads.WithLabelValues(server, m.mime(mime), StatusLabel(ok)).Inc()
}

func (m *Metrics) mime(mime string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.mimes[mime]; ok {
		return known
	}
	if len(m.mimes) >= maxMIMETypes {
		return "other"
	}
	clean := strings.ToValidUTF8(mime, "\uFFFD")
	if len(clean) > 128 {
		return "other"
	}
	m.mimes[strings.Clone(mime)] = clean
	return clean
}

// SetSubscriptions sets the number of subscriptions at server.
func (m *Metrics) SetSubscriptions(server string, n int) {
	m.subscriptions.WithLabelValues(server).Set(float64(n))
}

// AddSessions adds delta sessions of a transport.
func (m *Metrics) AddSessions(transport string, delta int) {
	m.sessions.WithLabelValues(transport).Add(float64(delta))
}

// SetConnected records whether server is connected.
func (m *Metrics) SetConnected(server string, up bool) {
	m.up.WithLabelValues(server).Set(gaugeValue(up))
}

// SetSleeping records whether server is idle.
func (m *Metrics) SetSleeping(server string, sleeps bool) {
	m.sleeping.WithLabelValues(server).Set(gaugeValue(sleeps))
}

func gaugeValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// AddRestart counts a reconnection to server.
func (m *Metrics) AddRestart(server string) { m.restarts.WithLabelValues(server).Inc() }

// SetEntries sets the number of visible entries of a kind and server.
func (m *Metrics) SetEntries(kind, server string, n int) {
	m.entries.WithLabelValues(kind, server).Set(float64(n))
}

// DeleteGauges removes a server's gauges. Counters stay, as Prometheus expects.
func (m *Metrics) DeleteGauges(server string) {
	for _, v := range []*prometheus.GaugeVec{m.subscriptions, m.up, m.sleeping, m.entries} {
		v.DeletePartialMatch(prometheus.Labels{"server_id": server})
	}
}
