package config

import (
	"context"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/secrettext"
)

// OTel configures traces by OpenTelemetry. Empty fields come from the standard variables
// of the environment (OTEL_…), which alone do not start traces.
type OTel struct {
	On       bool
	Endpoint string            // base URL of the receiver
	Headers  map[string]string // of each export
	Protocol OTelProtocol
	Sample   *float64 // share of traces from 0 to 1, or nil

	// Missing is the reason why a header has no value. Goblin sends no traces then.
	Missing Problem
	late    *lateText // if headers have references
}

// OTelProtocol is the encoding of exported spans.
type OTelProtocol string

// OTelHTTPProtobuf is OTLP over HTTP with protobuf, the only protocol so far.
const OTelHTTPProtobuf OTelProtocol = "http/protobuf"

func otelKeys() []field[OTel] {
	return []field[OTel]{
		key("endpoint", "Base URL of the receiver; /v1/traces is appended. Default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT or http://localhost:4318.",
			text(otelEndpointComplaint), func(o *OTel) *string { return &o.Endpoint }),
		key("headers", "HTTP headers for the receiver, in addition to OTEL_EXPORTER_OTLP_HEADERS. Their values are secrets.",
			withReferences(dict(loose(headerValueComplaint), keepHeaderName)), func(o *OTel) *map[string]string { return &o.Headers }),
		key("protocol", "Protocol of the receiver. Default: OTEL_EXPORTER_OTLP_PROTOCOL or http/protobuf.",
			words(OTelHTTPProtobuf), func(o *OTel) *OTelProtocol { return &o.Protocol }),
		key("sample", "Share of traces to send, from 0 to 1, unless the client decides. Default: OTEL_TRACES_SAMPLER, or all.",
			optional(share()), func(o *OTel) **float64 { return &o.Sample }),
	}
}

func otelEndpointComplaint(s string) string {
	if strings.Contains(s, "?") {
		return `must not have a "?" part`
	}
	return urlComplaint(s)
}

// share reads a number from 0 to 1.
func share() kind[float64] {
	return kind[float64]{
		schema: func(float64) object { return object{"type": "number", "minimum": 0, "maximum": 1} },
		read: func(r *reader, at keyPath, n *yaml.Node, dst *float64) {
			v, err := strconv.ParseFloat(n.Value, 64)
			switch {
			case !isNumber(n) || err != nil || math.IsNaN(v):
				r.fail(n, "%s must be a number from 0 to 1, not %s", at, describe(n))
			case v < 0 || v > 1:
				r.fail(n, "%s must be from 0 to 1", at)
			default:
				*dst = v
			}
		},
	}
}

// otel reads a mapping, or true or false.
func otel() kind[OTel] {
	some := section(otelKeys)
	return kind[OTel]{
		schema: func(def OTel) object {
			return object{"anyOf": []any{object{"enum": []any{"off", true, false}}, some.schema(def)}}
		},
		read: readOTel,
	}
}

func readOTel(r *reader, at keyPath, n *yaml.Node, dst *OTel) {
	*dst = OTel{On: true}
	if b, ok := boolean(n); ok || n.Kind == yaml.ScalarNode && n.Value == "off" {
		dst.On = b
		return
	}
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		r.fail(n, "%s must be a mapping, true or false, not %s", at, describe(n))
		return
	}
	if r.resolve == nil {
		r.asked = make(map[string]*string)
		defer func() { r.asked = nil }()
	}
	// A header without a value stops traces only, as a missing token stops HTTP only.
	inToken, noToken := r.inToken, r.noToken
	r.inToken, r.noToken = true, Problem{}
	readTable(r, at, otelKeys(), n, dst)
	dst.Missing, r.inToken, r.noToken = r.noToken, inToken, noToken
	if r.resolve == nil && dst.hasReferences() {
		dst.late = &lateText{r.origin(), at, n}
	}
	if dst.Missing.Text != "" {
		r.warns = append(r.warns, dst.Missing)
	}
}

// Equal reports whether two sections have the same settings as written.
func (o OTel) Equal(other OTel) bool {
	o.late, other.late = nil, nil
	return reflect.DeepEqual(o, other)
}

func (o *OTel) hasReferences() bool {
	for _, v := range o.Headers {
		if referenceStart().MatchString(v) {
			return true
		}
	}
	return false
}

// Resolve returns the settings with the values of their references. If one has no value,
// Missing has the reason.
func (o OTel) Resolve(ctx context.Context, resolve Resolver) (now OTel, secrets []string) {
	if o.late == nil {
		return o, nil
	}
	r := o.late.reader(ctx, resolve, &secrets)
	readOTel(r, o.late.at, o.late.node, &now)
	if len(r.errs) > 0 {
		now.Missing = r.errs[0]
	}
	return now, secrets
}

func otelSecrets(o *OTel) (all []string) {
	for _, v := range o.Headers {
		if o.late == nil || !referenceStart().MatchString(v) {
			all = append(all, headerSecrets(v)...)
		}
	}
	return append(all, secrettext.OfURL(o.Endpoint)...)
}
