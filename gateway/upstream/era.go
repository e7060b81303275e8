package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/extensions"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// modernRevision is the stateless revision that we speak.
const modernRevision = "2026-07-28"

// Errors that only servers of the modern era give, see the error codes of
// 2026-07-28.
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// handshake finds out which era the backend speaks, and opens the connection
// in it. server/discover comes first, for a short time: a server that says
// nothing to it, or anything that a modern one would not say, gets initialize
// on the same connection. Servers that were legacy before are asked for that at
// once the next time, so that only their first start can be slower.
func (l *link) handshake(ctx context.Context, limit time.Duration) error {
	if l.srv.cfg.Era == config.ModernEra {
		return l.handshakeModern(ctx, limit)
	}
	var discovered *discovery
	if l.asks() && !l.srv.legacy.Load() {
		discovered = l.discover(l.ctx, slowDiscover)
		patience := l.srv.tune.probe
		if !l.wire.local() {
			patience = l.srv.tune.remoteProbe
		}
		if !discovered.within(ctx, patience) && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := l.Err(); err != nil {
			return err
		}
		if discovered.only() {
			return l.openOffered(ctx, discovered)
		}
	}
	err := l.initialize(ctx, limit)
	switch {
	case err == nil:
		l.srv.legacy.Store(true)
		l.learn(discovered)
		return nil
	case ctx.Err() != nil, l.Err() != nil, l.wire.old():
		return err
	case !l.asks():
		return l.srv.failure(ConnectionError, reasonOf(err)+" (era: legacy); era: auto finds out whether it speaks a newer revision", err)
	}
	if discovered != nil && discovered.offered() && l.wire.local() {
		// It offers both, and takes the question for the choice of one, as the
		// official Go SDK does. A process that was not asked takes the other.
		l.remember(discovered)
		return errAskedFirst
	}
	// It refused. A modern one may only have been slow to start, or was
	// replaced by its next version since it was legacy.
	if discovered == nil {
		discovered = l.discover(ctx, limit)
		defer discovered.stop()
	}
	if discovered.within(ctx, l.srv.tune.remoteProbe) && discovered.modern {
		return l.openModern(ctx, discovered)
	}
	if discovered.versions != nil {
		known := append([]string{modernRevision}, revisions...)
		return l.srv.failure(BadReply, fmt.Sprintf("speaks protocol revisions %s only; known are %s to %s",
			l.srv.quote(fmt.Sprintf("%q", discovered.versions), 200), known[len(known)-1], known[0]), err)
	}
	return err
}

// asks reports whether a server is asked which eras it offers.
func (l *link) asks() bool { return !l.wire.old() && l.srv.cfg.Era != config.LegacyEra }

// openOffered opens the connection of a server that offers the modern era alone.
// Over stdio it is asked for the other one all the same, once: servers of the
// official TypeScript SDK name the modern revisions only, whether or not they
// take initialize. Over HTTP the answer would tell nothing: servers of the
// official Go SDK answer initialize also when they serve nothing after it.
func (l *link) openOffered(ctx context.Context, discovered *discovery) error {
	if !l.wire.local() || l.srv.modernOnly.Swap(true) {
		return l.openModern(ctx, discovered)
	}
	err := l.initialize(ctx, l.srv.tune.remoteProbe)
	switch {
	case err == nil:
		l.srv.modernOnly.Store(false)
		l.srv.legacy.Store(true)
		l.remember(discovered)
		return nil
	case ctx.Err() != nil, l.Err() != nil:
		return err
	}
	return l.openModern(ctx, discovered)
}

const (
	// slowDiscover is how long a server may take to answer server/discover after
	// it has answered initialize.
	slowDiscover = 10 * time.Minute
	// maxCut is how many connections may end before it has, until it is asked no
	// more: that question may be what they end of.
	maxCut = 3
)

// learn is remember, after waiting for an answer that is still due.
func (l *link) learn(discovered *discovery) {
	s := l.srv
	if discovered == nil && s.cut.Swap(false) {
		discovered = l.discover(l.ctx, slowDiscover)
	}
	if discovered == nil {
		l.remember(nil)
		return
	}
	select {
	case <-discovered.done:
		l.remember(discovered)
		return
	default:
		l.remember(nil)
	}
	l.spawn(func() {
		<-discovered.done // at the end of the connection, too
		if l.ctx.Err() != nil {
			s.cut.Store(s.cuts.Add(1) <= maxCut)
			return
		}
		l.remember(discovered)
		if s.dual() && !l.wire.local() {
			s.relist(l) // which arguments go into headers was not looked for
		}
	})
}

// remember keeps what a server that was taken in the legacy era says that it
// speaks besides; it is not asked again.
func (l *link) remember(discovered *discovery) {
	if discovered != nil {
		select {
		case <-discovered.done:
			l.srv.spoken.Store(&discovered.versions)
		default:
		}
	}
	if known := l.srv.spoken.Load(); known != nil {
		info := l.Info()
		info.Versions = *known
		l.info.Store(&info)
	}
}

// discovery is a server/discover and what it told.
type discovery struct {
	stop context.CancelFunc
	done chan struct{}

	// Valid after done.
	modern   bool     // the modern era is offered
	result   []byte   // nil unless it was answered well
	fault    error    // the error of a modern server
	err      error    // there was no answer
	versions []string // that the server says it speaks
}

// discover asks what the backend is. It goes on until limit, stop or the end
// of ctx; a backend that ignores it is neither told of a cancellation nor taken
// for dead.
func (l *link) discover(ctx context.Context, limit time.Duration) *discovery {
	ctx, cancel := context.WithCancel(ctx)
	d := &discovery{stop: cancel, done: make(chan struct{})}
	if !l.spawn(func() {
		defer cancel()
		defer close(d.done)
		ask := func() (jsonrpc.Reply, error) {
			return l.exchange(&Call{Context: ctx, Method: "server/discover", Timeout: limit, handshake: true, own: true, modern: true})
		}
		reply, err := ask()
		if err == nil && refusedThoughSpoken(reply.Error) {
			reply, err = ask() // with the revision that it names, which the first one had, too
		}
		switch {
		case err != nil:
			d.err = err
		case reply.Error != nil:
			d.refusal(l.srv, reply.Error)
		default:
			d.answer(reply.Result)
		}
	}) {
		d.err = l.srv.failure(ConnectionError, "the connection was closed", jsonrpc.ErrClosed)
		close(d.done)
	}
	return d
}

// refusedThoughSpoken reports an error that names the modern revision among those that the
// server speaks, and refuses it all the same.
func refusedThoughSpoken(object []byte) bool {
	e := jsonrpc.ParseErrorObject(object)
	return object != nil && e.Code == codeUnsupportedVersion && slices.Contains(versions(rawjson.Get(e.Data, "supported")), modernRevision)
}

// maxVersions bounds what a server says that it speaks.
const maxVersions = 64

func (d *discovery) answer(result []byte) {
	d.versions = versions(rawjson.Get(result, "supportedVersions"))
	if d.modern = slices.Contains(d.versions, modernRevision); d.modern {
		d.result = result
	}
}

func versions(array []byte) (found []string) {
	for v := range rawjson.Elements(array) {
		if s, ok := rawjson.String(v); ok && len(s) <= 64 && len(found) < maxVersions {
			found = append(found, s)
		}
	}
	return found
}

func (d *discovery) refusal(s *Server, object []byte) {
	fault := s.refused(object)
	switch fault.object.Code {
	case codeUnsupportedVersion:
		// A modern server, but not of a revision that we speak.
		d.versions = versions(rawjson.Get(fault.object.Data, "supported"))
	case codeHeaderMismatch, codeMissingCapability:
		d.modern, d.fault = true, fault
	}
}

// within waits; it reports false when there is no answer in that time.
func (d *discovery) within(ctx context.Context, limit time.Duration) bool {
	select {
	case <-d.done:
		return true
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return false
}

// errAskedFirst: a process has to be started again, to be asked for the legacy
// era at once.
var errAskedFirst = errors.New("refused initialize after server/discover")

// offered reports whether the answer is there and offers the modern era.
func (d *discovery) offered() bool {
	select {
	case <-d.done:
		return d.result != nil
	default:
		return false
	}
}

// only reports whether the modern era is to be taken without trying the other.
func (d *discovery) only() bool {
	return d.offered() && !slices.ContainsFunc(d.versions, func(v string) bool { return slices.Contains(revisions, v) })
}

// openModern opens the connection in the modern era.
func (l *link) openModern(ctx context.Context, d *discovery) error {
	if d.result == nil {
		return l.srv.failure(ConnectionError, fmt.Sprintf("refused server/discover: %v", d.fault), d.fault)
	}
	info := Info{Era: Modern, SecondEra: l.second, Protocol: modernRevision, Versions: d.versions}
	si := rawjson.Path(d.result, "_meta", wire.ServerInfo)
	if !rawjson.IsObject(si) {
		si = rawjson.Get(d.result, "serverInfo") // where drafts of the revision had it
	}
	if err := l.introduced(&info, d.result, si); err != nil {
		return err
	}
	l.listen(ctx)
	return nil
}

// initialize opens the connection in the legacy era.
func (l *link) initialize(ctx context.Context, timeout time.Duration) error {
	params := append([]byte(`{"protocolVersion":"`), revisions[0]...)
	params = append(params, `","capabilities":`...)
	params = append(params, l.srv.declares(l.Unit())...)
	params = append(params, `,"clientInfo":{"name":"goblin","version":`...)
	params = rawjson.AppendString(params, l.srv.opt.Version)
	params = append(params, `}}`...)

	reply, err := l.exchange(&Call{Context: ctx, Method: "initialize", Params: params, Timeout: timeout, handshake: true, opening: true})
	if err != nil {
		return err
	}
	if reply.Error != nil {
		cause := l.srv.refused(reply.Error)
		return l.srv.failure(ConnectionError, fmt.Sprintf("refused initialize: %v", cause), cause)
	}
	version, ok := rawjson.String(rawjson.Get(reply.Result, "protocolVersion"))
	if !ok {
		return l.srv.failure(BadReply, "answered initialize without a protocolVersion", nil)
	}
	if !slices.Contains(revisions, version) {
		return l.srv.failure(BadReply, fmt.Sprintf("speaks protocol revision %q only; known are %s to %s",
			l.srv.quote(version, 40), revisions[len(revisions)-1], revisions[0]), nil)
	}
	info := Info{Era: Legacy, Protocol: version}
	if err := l.introduced(&info, reply.Result, rawjson.Get(reply.Result, "serverInfo")); err != nil {
		return err
	}
	return l.begins(ctx)
}

// Bounds of what a server says of itself, in bytes. It is kept with each of its
// connections, and its capabilities are looked at in each call.
const (
	maxCapabilities = 256 << 10
	maxServerInfo   = 256 << 10
	maxInstructions = 64 << 10
)

// introduced notes what a server says of itself in its answer to the handshake.
func (l *link) introduced(info *Info, result, server []byte) error {
	info.Capabilities = []byte("{}")
	if caps := rawjson.Get(result, "capabilities"); rawjson.IsObject(caps) {
		caps, complaint := extensions.WithinBounds(caps)
		if complaint != "" {
			l.srv.note(slog.LevelWarn, complaint)
		}
		if len(caps) > maxCapabilities {
			return l.srv.failure(BadReply, fmt.Sprintf("declares capabilities of more than %d KiB", maxCapabilities>>10), nil)
		}
		info.Capabilities = bytes.Clone(caps) // or all of the answer would be kept
	}
	if rawjson.IsObject(server) && len(server) <= maxServerInfo {
		info.ServerInfo = bytes.Clone(server)
	}
	text, _ := rawjson.String(rawjson.Get(result, "instructions"))
	if len(text) > maxInstructions {
		text = strings.ToValidUTF8(text[:maxInstructions], "") + "…"
	}
	info.Instructions = text
	l.info.Store(info)
	return nil
}

// spoiled reports whether err is the fault of what a process was asked to find
// out its era, so that another does better which is not asked that. Some legacy
// servers end when initialize is not what comes first.
func (l *link) spoiled(err error) bool {
	if !l.wire.local() || !l.asks() || l.srv.cfg.Era == config.ModernEra || !errors.Is(err, errAskedFirst) && l.Err() == nil {
		return false
	}
	l.srv.legacy.Store(!l.srv.modernOnly.Load())
	return true
}
