package gateway

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
	"goblin/registry/rawjson"
)

// Bounds of the calls that wait for their clients: in all, beyond which the oldest
// of whoever has most makes room, and of one session on a byte stream.
const (
	maxHeld        = 1024
	maxHeldSession = 256
)

// ticket names a held call and how often its client was asked. The zero
// ticket stands for a call that begins anew.
type ticket struct {
	id    [16]byte
	round uint64
}

// holds are the calls whose clients have gone to find answers. A client comes
// back with a requestState: a ticket and its expiry, with a code over both,
// over whose it is and over the request, made with a key that ends with the
// process. So nobody can make one up, use another's, or use his own for
// another request.
type holds struct {
	key   [32]byte
	mark  string // begins each of our states: others are servers'
	limit time.Duration

	large   memory.Stock // what they hold beyond memory.Free
	account *memory.Account

	mu   sync.Mutex
	last uint64
	all  map[[16]byte]*held
}

func (t *holds) init(limit time.Duration) {
	rand.Read(t.key[:]) //nolint:errcheck // never fails
	t.mark = "goblin-" + rand.Text()[:8] + "."
	t.limit = limit
	t.all = make(map[[16]byte]*held)
}

// keep notes a call for its client to come back to, and gives the state to
// come back with; not ok when its session has too many. ousted is a call that
// made room, whose client cannot come back; nil for none. h.mu is held.
func (t *holds) keep(h *held, r *request) (state string, ousted *held, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[h.ticket.id] != h {
		if s := r.Session(); !s.Stateless() {
			own := 0
			for _, other := range t.all {
				if other.session == s {
					own++
				}
			}
			if own >= maxHeldSession {
				return "", nil, false
			}
		}
		h.place.claim(r)
		if len(t.all) >= maxHeld {
			ousted = t.farthest(&h.place)
			t.forget(ousted)
		}
		t.last++
		h.place.number = t.last
		rand.Read(h.ticket.id[:]) //nolint:errcheck // never fails
		t.all[h.ticket.id] = h
		t.hold(h, len(r.Params()))
	}
	h.ticket.round++
	return t.state(h.ticket, r), ousted, true
}

// forget forgets a call. The lock is held.
func (t *holds) forget(h *held) {
	delete(t.all, h.ticket.id)
	h.place.piece.Release()
	h.place.piece = nil
}

// drop forgets a call.
func (t *holds) drop(h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[h.ticket.id] == h {
		t.forget(h)
	}
}

// release forgets the calls of a session that has ended: nobody can come back
// for them.
func (t *holds) release(s *downstream.Session) {
	t.mu.Lock()
	var gone []*held
	for _, h := range t.all {
		if h.session == s {
			gone = append(gone, h)
			t.forget(h)
		}
	}
	t.mu.Unlock()
	for _, h := range gone {
		h.mu.Lock()
		h.timer.Stop()
		h.mu.Unlock()
	}
}

// again is the state of a request that is to be sent again as it was.
func (t *holds) again(r *request) string { return t.state(ticket{}, r) }

const ticketSize = 16 + 8 + 8

var stateEncoding = base64.RawURLEncoding.Strict()

func (t *holds) state(k ticket, r *request) string {
	raw := append(make([]byte, 0, ticketSize+sha256.Size), k.id[:]...)
	raw = binary.BigEndian.AppendUint64(raw, k.round)
	raw = binary.BigEndian.AppendUint64(raw, uint64(time.Now().Add(t.limit).UnixMilli()))
	return t.mark + stateEncoding.EncodeToString(append(raw, t.code(raw, r)...))
}

// code authenticates a ticket for its owner and its request.
func (t *holds) code(raw []byte, r *request) []byte {
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write(raw)
	mac.Write([]byte(r.Session().ID()))
	digest := digestOf(r)
	mac.Write(digest[:])
	return mac.Sum(nil)
}

// digestOf is the same for requests that mean the same: clients may write a
// request anew when they send it again, and bring answers and other metadata.
func digestOf(r *request) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write([]byte(r.Method()))
	for k, v := range rawjson.Members(r.Params()) {
		if k.Is("_meta") {
			continue
		}
		name, _ := rawjson.String(k)
		hash.Write(append(rawjson.Quote(name), ':'))
		hash.Write(canonical(v))
		hash.Write([]byte{','})
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// maxCanonical is how long a value may be that is decoded, which takes a multiple
// of its size.
const maxCanonical = 256 << 10

// canonical writes a value in the one way that encoding/json has for it,
// numbers as they stood. A long one has to be sent again as it was.
func canonical(v []byte) []byte {
	if len(v) > maxCanonical {
		return v
	}
	var decoded any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&decoded) != nil {
		return v
	}
	out, err := json.Marshal(decoded)
	if err != nil {
		return v
	}
	return out
}

// mine reports whether a requestState is one of ours, or was made to look so.
// Of others' only their servers know what they are worth; that may be another
// Goblin, whose mark differs.
func (t *holds) mine(state []byte) bool {
	text, _ := rawjson.String(state)
	return strings.HasPrefix(text, t.mark)
}

// resume finds the call that a client comes back for, and gives it what it
// brings; nil for one that begins anew.
func (t *holds) resume(r *request, state []byte) (*held, error) {
	text, _ := rawjson.String(state)
	raw, err := stateEncoding.DecodeString(strings.TrimPrefix(text, t.mark))
	if err != nil || len(raw) != ticketSize+sha256.Size || !hmac.Equal(raw[ticketSize:], t.code(raw[:ticketSize], r)) {
		return nil, stateError("was not given for this request")
	}
	expiry := time.UnixMilli(int64(binary.BigEndian.Uint64(raw[24:])))
	if time.Now().After(expiry) {
		return nil, stateError("has expired")
	}
	k := ticket{id: [16]byte(raw), round: binary.BigEndian.Uint64(raw[16:])}
	if k == (ticket{}) {
		return nil, nil
	}
	t.mu.Lock()
	h := t.all[k.id]
	t.mu.Unlock()
	switch {
	case h == nil:
		return nil, stateError("has expired")
	case !h.take(r, k):
		return nil, stateError("was used already")
	}
	return h, nil
}

func stateError(why string) error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: requestState " + why + "; send the request without it",
		Data: rawjson.Object("code", "REQUEST_STATE_INVALID"),
	}
}
