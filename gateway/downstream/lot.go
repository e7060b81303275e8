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

// ParkedCalls has the calls whose stateless clients have gone to find answers. A client
// comes back with a requestState: a ticket and its expiry, with a code over both,
// over whose it is and over the request, made with a key that ends with the
// process. So nobody can make one up, use another's, or use his own for
// another request.
type ParkedCalls struct {
	key   [32]byte
	mark  string // begins each of our states: others are servers'
	limit time.Duration

	pool *memlimit.Pool

	mu   sync.Mutex
	last uint64
	all  map[[16]byte]*parked
}

// NewParkedCalls makes one for the sessions whose [Options] have it. limit is how long
// a client may stay away, 15 min if it is 0. What the calls take counts in pool,
// which may be nil.
func NewParkedCalls(limit time.Duration, pool *memlimit.Pool) *ParkedCalls {
	if limit <= 0 {
		limit = parkLimit
	}
	t := &ParkedCalls{mark: "goblin-" + rand.Text()[:8] + ".", limit: limit, pool: pool, all: make(map[[16]byte]*parked)}
	rand.Read(t.key[:]) //nolint:errcheck // never fails
	return t
}

// ticket names a parked call and how often its client was asked. The zero
// ticket stands for a call that begins anew.
type ticket struct {
	id    [16]byte
	round uint64
}

// parkOwner identifies the owner of a parked call.
//
// Clients on byte streams are told apart by their sessions. Those of stateless HTTP
// have nothing but an address, which all on one machine share, and a connection,
// of which a client may have many. So room is made by the address with most calls,
// and there by the connection with most.
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

// Room is made by client first, then by connection.
func (p parkOwner) client() parkOwner     { return parkOwner{session: p.session, address: p.address} }
func (p parkOwner) connection() parkOwner { return p }

// keep notes a call for its client to come back to, and gives the state to
// come back with; not ok when its session has too many, or there is no room. ousted is a call that
// made room, whose client cannot come back; nil for none. The call's mu is held.
func (t *ParkedCalls) keep(c *parked, x *Request) (state string, ousted *parked, ok bool) {
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
			ousted = t.farthestLocked(c.owner)
			t.forgetLocked(ousted)
		}
		t.last++
		c.number = t.last
		rand.Read(c.ticket.id[:]) //nolint:errcheck // never fails
		c.room.SetOwner(t.pool.NewOwner())
		if !t.growLocked(c, len(x.Params())) {
			return "", ousted, false
		}
		t.all[c.ticket.id] = c
	}
	c.ticket.round++
	return t.state(c.ticket, x), ousted, true
}

// farthestLocked is the oldest call of whoever has most, next included. There is at
// least one call.
func (t *ParkedCalls) farthestLocked(next parkOwner) *parked {
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
		all = slices.DeleteFunc(all, func(c *parked) bool { return counts[who(c.owner)] < most })
	}
	return slices.MinFunc(all, func(a, b *parked) int { return cmp.Compare(a.number, b.number) })
}

func (t *ParkedCalls) forgetLocked(c *parked) {
	delete(t.all, c.ticket.id)
	c.bytes = 0
	c.room.Resize(0)
}

// drop forgets a call.
func (t *ParkedCalls) drop(c *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[c.ticket.id] == c {
		t.forgetLocked(c)
	}
}

// growLocked counts n bytes more that a call takes while its client is away; it
// reports false when there is no room for them.
func (t *ParkedCalls) growLocked(c *parked, n int) bool {
	if !c.room.Resize(c.bytes + int64(n)) {
		return false
	}
	c.bytes += int64(n)
	return true
}

// grow is growLocked for a call that may be forgotten already.
func (t *ParkedCalls) grow(c *parked, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[c.ticket.id] != c || t.growLocked(c, n)
}

const ticketSize = 16 + 8 + 8

var stateEncoding = base64.RawURLEncoding.Strict()

func (t *ParkedCalls) state(k ticket, x *Request) string {
	raw := append(make([]byte, 0, ticketSize+sha256.Size), k.id[:]...)
	raw = binary.BigEndian.AppendUint64(raw, k.round)
	raw = binary.BigEndian.AppendUint64(raw, uint64(time.Now().Add(t.limit).UnixMilli()))
	return t.mark + stateEncoding.EncodeToString(append(raw, t.code(raw, x)...))
}

// code authenticates a ticket for its owner and its request.
func (t *ParkedCalls) code(raw []byte, x *Request) []byte {
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write(raw)
	mac.Write([]byte(x.session.id))
	digest := digestOf(x)
	mac.Write(digest[:])
	return mac.Sum(nil)
}

// maxCanonical is how long a value may be that is put in order, which takes a
// multiple of its size. A longer one has to be sent again as it was.
const maxCanonical = 256 << 10

// digestOf is the same for requests that mean the same: clients may write a
// request anew when they send it again, and bring answers and other metadata.
func digestOf(x *Request) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write([]byte(x.method))
	for k, v := range rawjson.Members(strip(x.params, false)) {
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

// mine reports whether a requestState is one of ours, or was made to look so.
// Of others' only their servers know what they are worth; that may be another
// Goblin, whose mark differs.
func (t *ParkedCalls) mine(state []byte) bool {
	text, _ := rawjson.String(state)
	return strings.HasPrefix(text, t.mark)
}

// find returns the call that a client comes back for, and its ticket; nil for one
// that begins anew.
func (t *ParkedCalls) find(x *Request, state []byte) (*parked, ticket, error) {
	text, _ := rawjson.String(state)
	raw, err := stateEncoding.DecodeString(strings.TrimPrefix(text, t.mark))
	if err != nil || len(raw) != ticketSize+sha256.Size || !hmac.Equal(raw[ticketSize:], t.code(raw[:ticketSize], x)) {
		return nil, ticket{}, stateError("was not given for this request")
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

// ErrForeignState refuses a requestState that neither we gave nor the server of the
// request.
var ErrForeignState = stateError("was not given for this request")

func stateError(why string) error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: requestState " + why + "; send the request without it",
		Data: rawjson.Object("code", "REQUEST_STATE_INVALID"),
	}
}
