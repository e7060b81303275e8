package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"goblin/gateway/config"
)

const (
	tracesPath     = "/v1/traces"
	defaultBase    = "http://localhost:4318"
	defaultTimeout = 10 * time.Second
	// maxQueue is the largest OTEL_BSP_MAX_QUEUE_SIZE, in spans.
	maxQueue     = 1 << 20
	maxMillis    = 1 << 31
	defaultQueue = 2048 // of the SDK, as the next three
	defaultBatch = 512
	defaultDelay = 5000  // milliseconds
	defaultLimit = 30000 // milliseconds
)

// settings are the values of one export.
type settings struct {
	url     string
	headers map[string]string
	timeout time.Duration // of one attempt
	gzip    bool
	tls     *tls.Config // nil: the default
	queue   int         // spans that wait
	batch   int         // spans in one request
	delay   time.Duration
	limit   time.Duration // of one batch with its repetitions
	off     bool          // by the environment
}

// readSettings combines the config with the standard variables. The config wins.
func readSettings(cfg config.OTel, getenv func(string) string) (s settings, err error) {
	// of returns a variable for traces, otherwise the one for all signals.
	of := func(name string) (key, value string) {
		for _, key = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value = strings.TrimSpace(getenv(key)); value != "" {
				return key, value
			}
		}
		return key, ""
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return settings{off: true}, nil
	}
	switch v := getenv("OTEL_TRACES_EXPORTER"); v {
	case "", "otlp":
	case "none":
		return settings{off: true}, nil
	default:
		return s, fmt.Errorf("OTEL_TRACES_EXPORTER=%s is not supported; use otlp or none", short(v))
	}
	if key, v := of("PROTOCOL"); cfg.Protocol == "" && v != "" && v != string(config.OTelHTTPProtobuf) {
		return s, fmt.Errorf("%s=%s is not supported; use http/protobuf, or set otel.protocol in the config", key, short(v))
	}
	if s.url, err = endpoint(cfg, getenv); err != nil {
		return s, err
	}
	if s.headers, err = headers(cfg, of); err != nil {
		return s, err
	}
	if s.timeout, err = timeout(of); err != nil {
		return s, err
	}
	switch key, v := of("COMPRESSION"); v {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return s, fmt.Errorf("%s=%s is not supported; use gzip or none", key, short(v))
	}
	s.readQueue(getenv)
	s.tls, err = tlsConfig(of)
	return s, err
}

// readQueue reads the variables of the SDK's queue. The SDK itself panics for a negative
// size, and uses a whole processor without a delay.
func (s *settings) readQueue(getenv func(string) string) {
	number := func(name string, otherwise, most int) int {
		if n, err := strconv.Atoi(getenv("OTEL_BSP_" + name)); err == nil && n > 0 {
			return min(n, most)
		}
		return otherwise
	}
	s.queue = number("MAX_QUEUE_SIZE", defaultQueue, maxQueue)
	s.batch = number("MAX_EXPORT_BATCH_SIZE", min(defaultBatch, s.queue), s.queue)
	s.delay = time.Duration(number("SCHEDULE_DELAY", defaultDelay, maxMillis)) * time.Millisecond
	s.limit = time.Duration(number("EXPORT_TIMEOUT", defaultLimit, maxMillis)) * time.Millisecond
}

// short returns a value for messages. Values of unexpected length may be secrets.
func short(v string) string {
	if len(v) > 32 {
		return "…"
	}
	return strconv.Quote(v)
}

func endpoint(cfg config.OTel, getenv func(string) string) (string, error) {
	base, key := cfg.Endpoint, "otel.endpoint"
	if base == "" {
		if own := strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")); own != "" {
			return checkURL("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own)
		}
		base, key = strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_ENDPOINT")), "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	if base == "" {
		base = defaultBase
	}
	base = strings.TrimRight(base, "/")
	if !strings.HasSuffix(base, tracesPath) {
		base += tracesPath
	}
	return checkURL(key, base)
}

func checkURL(key, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("%s is not a URL; write it as http://host:4318", key)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// shownURL returns the URL without user, query and fragment.
func (s *settings) shownURL() string { return plainURI(s.url) }

func headers(cfg config.OTel, of func(string) (string, string)) (map[string]string, error) {
	all := map[string]string{}
	key, list := of("HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || !isHeader(name, value) {
			return nil, fmt.Errorf("%s is not a list of NAME=value separated by commas; encode other characters with %%", key)
		}
		all[name] = value
	}
	for name, value := range cfg.Headers {
		all[name] = value
	}
	return all, nil
}

func isHeader(name, value string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}) && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

func timeout(of func(string) (string, string)) (time.Duration, error) {
	key, v := of("TIMEOUT")
	if v == "" {
		return defaultTimeout, nil
	}
	ms, err := strconv.ParseInt(v, 10, 32)
	if err != nil || ms <= 0 {
		return 0, fmt.Errorf("%s=%s is not a number of milliseconds", key, short(v))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// tlsConfig returns nil if no variable names a file.
func tlsConfig(of func(string) (string, string)) (*tls.Config, error) {
	var conf tls.Config
	changed := false
	if key, path := of("CERTIFICATE"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		conf.RootCAs, changed = x509.NewCertPool(), true
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s contains no certificate in PEM", key, path)
		}
	}
	key, cert := of("CLIENT_CERTIFICATE")
	_, private := of("CLIENT_KEY")
	if (cert == "") != (private == "") {
		return nil, fmt.Errorf("%s needs OTEL_EXPORTER_OTLP_CLIENT_KEY, and the other way round", key)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, private)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		conf.Certificates, changed = []tls.Certificate{pair}, true
	}
	if !changed {
		return nil, nil
	}
	return &conf, nil
}
