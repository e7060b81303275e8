package tracing

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// encode returns spans of one provider as an ExportTraceServiceRequest (OTLP 1). The
// field numbers are from opentelemetry/proto/trace/v1/trace.proto. A test decodes the result
// with the official messages.
func encode(spans []sdktrace.ReadOnlySpan) []byte {
	var all message
	if len(spans) == 0 {
		return all
	}
	all.nested(1, func(group *message) { // resource_spans
		from := spans[0].Resource()
		group.nested(1, func(m *message) { m.attributes(1, from.Attributes()) })
		group.nested(2, func(scope *message) { // scope_spans
			by := spans[0].InstrumentationScope()
			scope.nested(1, func(m *message) {
				m.text(1, by.Name)
				m.text(2, by.Version)
			})
			for _, s := range spans {
				scope.nested(2, func(m *message) { m.span(s) })
			}
		})
		group.text(3, from.SchemaURL())
	})
	return all
}

// Bits of Span.flags beside the trace flags.
const (
	hasIsRemote = 0x100
	isRemote    = 0x200
)

// message is a protobuf message under construction.
type message []byte

func (m *message) span(s sdktrace.ReadOnlySpan) {
	at, parent := s.SpanContext(), s.Parent()
	trace, id := at.TraceID(), at.SpanID()
	m.bytes(1, trace[:])
	m.bytes(2, id[:])
	m.text(3, at.TraceState().String())
	if above := parent.SpanID(); above.IsValid() {
		m.bytes(4, above[:])
	}
	m.text(5, s.Name())
	m.number(6, uint64(s.SpanKind())) // the SDK numbers kinds like the protocol
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.number(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.nested(11, func(m *message) {
			m.time(1, e.Time)
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
			m.number(4, uint64(e.DroppedAttributeCount))
		})
	}
	m.number(12, uint64(s.DroppedEvents()))
	for _, l := range s.Links() {
		m.nested(13, func(m *message) {
			trace, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
			m.bytes(1, trace[:])
			m.bytes(2, id[:])
			m.text(3, l.SpanContext.TraceState().String())
			m.attributes(4, l.Attributes)
			m.number(5, uint64(l.DroppedAttributeCount))
			m.fixed32(6, flags(byte(l.SpanContext.TraceFlags()), l.SpanContext.IsRemote()))
		})
	}
	m.number(14, uint64(s.DroppedLinks()))
	if status := s.Status(); status.Code != codes.Unset {
		m.nested(15, func(m *message) {
			m.text(2, status.Description)
			m.number(3, statusCode(status.Code))
		})
	}
	m.fixed32(16, flags(byte(at.TraceFlags()), parent.IsRemote()))
}

// statusCode returns the protocol's number, which differs from the SDK's.
func statusCode(c codes.Code) uint64 {
	if c == codes.Error {
		return 2
	}
	return 1
}

func flags(trace byte, remote bool) uint32 {
	all := uint32(trace) | hasIsRemote
	if remote {
		all |= isRemote
	}
	return all
}

// nested appends what fill appends, then moves it to insert its length. That saves a
// buffer for each message.
func (m *message) nested(n protowire.Number, fill func(*message)) {
	*m = protowire.AppendTag(*m, n, protowire.BytesType)
	start := len(*m)
	fill(m)
	size := len(*m) - start
	end := protowire.AppendVarint(*m, uint64(size))
	prefix := end[len(*m):]
	var room [10]byte
	copy(room[:], prefix)
	copy(end[start+len(prefix):], end[start:start+size])
	copy(end[start:], room[:len(prefix)])
	*m = end
}

func (m *message) bytes(n protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, n, protowire.BytesType), v)
}

// text omits an empty text. Receivers refuse a batch with invalid UTF-8.
func (m *message) text(n protowire.Number, v string) {
	if v != "" {
		m.fullText(n, v)
	}
}

func (m *message) fullText(n protowire.Number, v string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, n, protowire.BytesType), strings.ToValidUTF8(v, "\uFFFD"))
}

// number omits zero.
func (m *message) number(n protowire.Number, v uint64) {
	if v != 0 {
		m.fullNumber(n, v)
	}
}

func (m *message) fullNumber(n protowire.Number, v uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, n, protowire.VarintType), v)
}

func (m *message) fixed32(n protowire.Number, v uint32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, n, protowire.Fixed32Type), v)
}

func (m *message) fixed64(n protowire.Number, v uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, n, protowire.Fixed64Type), v)
}

func (m *message) time(n protowire.Number, v time.Time) { m.fixed64(n, uint64(v.UnixNano())) }

func (m *message) attributes(n protowire.Number, all []attribute.KeyValue) {
	for _, a := range all {
		m.nested(n, func(m *message) {
			m.text(1, string(a.Key))
			m.nested(2, func(m *message) { m.value(a.Value) })
		})
	}
}

// value writes an AnyValue. Spans and resources contain only these types.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.fullNumber(2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		m.fullNumber(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.fixed64(4, math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		m.nested(5, func(m *message) {
			for _, s := range v.AsStringSlice() {
				m.nested(1, func(m *message) { m.fullText(1, s) })
			}
		})
	default:
		m.fullText(1, v.String())
	}
}
