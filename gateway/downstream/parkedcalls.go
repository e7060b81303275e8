package downstream

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// ParkedCalls holds calls that wait for stateless clients. A client returns with a
// requestState: a ticket and its expiry. An HMAC with a key of this process covers both,
// the owner and the request. So a client cannot forge a state, use another client's, or
// use its own for another request.
type ParkedCalls struct {
	key    [32]byte
	prefix string // of each requestState of this process
	limit  time.Duration

	pool *memlimit.Pool

	mu         sync.Mutex
	lastNumber uint64
	all        map[[16]byte]*parkedCall
}

// NewParkedCalls returns an empty ParkedCalls. limit is the maximum absence of a client;
// 0 means 15 min. pool counts the calls' memory and may be nil.
func NewParkedCalls(limit time.Duration, pool *memlimit.Pool) *ParkedCalls {
	if limit <= 0 {
		limit = parkTimeout
	}
	t := &ParkedCalls{prefix: "goblin-" + rand.Text()[:8] + ".", limit: limit, pool: pool, all: make(map[[16]byte]*parkedCall)}
	rand.Read(t.key[:]) //nolint:errcheck // never fails
	return t
}

// ticket identifies a parked call and its round. The zero ticket has no call.
type ticket struct {
	id    [16]byte
	round uint64
}

// parkOwner identifies the owner of a parked call: its session, or for stateless HTTP its
// address and port. Clients on a machine share an address and each may have many
// connections. So eviction picks the address with most calls, then its connection with
// most.
type parkOwner struct {
	session *Session // nil for stateless HTTP
	address string
	port    string
}

func parkOwnerOf(x *Request) (p parkOwner) {
	if !x.session.stateless {
		p.session = x.session
	} else if host, port, err := net.SplitHostPort(x.modern.Remote); err == nil {
		p.address, p.port = host, port
	}
	return p
}

func (p parkOwner) client() parkOwner     { return parkOwner{session: p.session, address: p.address} }
func (p parkOwner) connection() parkOwner { return p }

// add records a call and returns the requestState for its client. ok is false over a
// limit. evicted is a removed call or nil. The caller holds c.mu.
func (t *ParkedCalls) add(c *parkedCall, x *Request) (state string, evicted *parkedCall, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[c.ticket.id] != c {
		if s := x.session; !s.stateless {
			own := 0
			for _, other := range t.all {
				if other.owner.session == s {
					own++
				}
			}
			if own >= maxParkedSession {
				return "", nil, false
			}
		}
		c.owner = parkOwnerOf(x)
		if len(t.all) >= maxParked {
			evicted = t.evictCandidateLocked(c.owner)
			t.removeLocked(evicted)
		}
		t.lastNumber++
		c.number = t.lastNumber
		rand.Read(c.ticket.id[:]) //nolint:errcheck // never fails
		c.reservation.SetOwner(t.pool.NewOwner())
		if !t.growLocked(c, len(x.Params())) {
			return "", evicted, false
		}
		t.all[c.ticket.id] = c
	}
	c.ticket.round++
	return t.encodeState(c.ticket, x), evicted, true
}

// evictCandidateLocked returns the oldest call of the owner with most calls, counting
// next. There must be a call.
func (t *ParkedCalls) evictCandidateLocked(next parkOwner) *parkedCall {
	all := slices.Collect(maps.Values(t.all))
	for _, who := range []func(parkOwner) parkOwner{parkOwner.client, parkOwner.connection} {
		counts := map[parkOwner]int{who(next): 1}
		for _, c := range all {
			counts[who(c.owner)]++
		}
		most := 0
		for _, c := range all {
			most = max(most, counts[who(c.owner)])
		}
		all = slices.DeleteFunc(all, func(c *parkedCall) bool { return counts[who(c.owner)] < most })
	}
	return slices.MinFunc(all, func(a, b *parkedCall) int { return cmp.Compare(a.number, b.number) })
}

func (t *ParkedCalls) removeLocked(c *parkedCall) {
	delete(t.all, c.ticket.id)
	c.bytes = 0
	c.reservation.Resize(0)
}

func (t *ParkedCalls) remove(c *parkedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[c.ticket.id] == c {
		t.removeLocked(c)
	}
}

// growLocked adds n bytes to a call. It returns false over the memory limit.
func (t *ParkedCalls) growLocked(c *parkedCall, n int) bool {
	if !c.reservation.Resize(c.bytes + int64(n)) {
		return false
	}
	c.bytes += int64(n)
	return true
}

func (t *ParkedCalls) grow(c *parkedCall, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[c.ticket.id] != c || t.growLocked(c, n)
}

const ticketSize = 16 + 8 + 8

var stateEncoding = base64.RawURLEncoding.Strict()

func (t *ParkedCalls) encodeState(k ticket, x *Request) string {
	raw := append(make([]byte, 0, ticketSize+sha256.Size), k.id[:]...)
	raw = binary.BigEndian.AppendUint64(raw, k.round)
	raw = binary.BigEndian.AppendUint64(raw, uint64(time.Now().Add(t.limit).UnixMilli()))
	return t.prefix + stateEncoding.EncodeToString(append(raw, t.mac(raw, x)...))
}

// mac authenticates a ticket with its owner and request.
func (t *ParkedCalls) mac(raw []byte, x *Request) []byte {
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write(raw)
	mac.Write([]byte(x.session.id))
	digest := requestDigest(x)
	mac.Write(digest[:])
	return mac.Sum(nil)
}

// maxCanonical is the maximum size of a value whose digest ignores the order of members.
// Canonical order takes a multiple of the memory.
const maxCanonical = 256 << 10

// requestDigest returns a digest of a request without answers and metadata. It ignores
// the JSON encoding.
func requestDigest(x *Request) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write([]byte(x.method))
	for k, v := range rawjson.Members(stripEnvelope(x.params, false)) {
		if k.Is("_meta") {
			continue
		}
		name, _ := rawjson.String(k)
		hash.Write(append(rawjson.Quote(name), ':'))
		if len(v) <= maxCanonical {
			v = rawjson.AppendCanonical(nil, v)
		}
		hash.Write(v)
		hash.Write([]byte{','})
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// isOwnState reports whether this process issued a requestState. Others belong to
// servers, possibly another Goblin.
func (t *ParkedCalls) isOwnState(state []byte) bool {
	text, _ := rawjson.String(state)
	return strings.HasPrefix(text, t.prefix)
}

// find returns the call and ticket of a state. The call is nil for a new request.
func (t *ParkedCalls) find(x *Request, state []byte) (*parkedCall, ticket, error) {
	text, _ := rawjson.String(state)
	raw, err := stateEncoding.DecodeString(strings.TrimPrefix(text, t.prefix))
	if err != nil || len(raw) != ticketSize+sha256.Size || !hmac.Equal(raw[ticketSize:], t.mac(raw[:ticketSize], x)) {
		return nil, ticket{}, stateError("does not belong to this request")
	}
	expiry := time.UnixMilli(int64(binary.BigEndian.Uint64(raw[24:])))
	if time.Now().After(expiry) {
		return nil, ticket{}, stateError("has expired")
	}
	k := ticket{id: [16]byte(raw), round: binary.BigEndian.Uint64(raw[16:])}
	if k == (ticket{}) {
		return nil, k, nil
	}
	t.mu.Lock()
	c := t.all[k.id]
	t.mu.Unlock()
	if c == nil {
		return nil, k, stateError("has expired")
	}
	return c, k, nil
}

// ErrForeignState refuses a requestState that belongs to neither Goblin nor the server.
var ErrForeignState = stateError("does not belong to this request")

func stateError(why string) error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: requestState " + why + "; send the request without it",
		Data: rawjson.Object("code", "REQUEST_STATE_INVALID"),
	}
}
