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

const modernRevision = "2026-07-28"

// Error codes that only modern servers send (2026-07-28, error codes).
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// handshake determines the server's era and opens the connection in it. It sends
// server/discover with a short timeout, then initialize unless a modern server answered.
// A server that was legacy before gets initialize at once, so that only its first start
// is slower.
func (l *link) handshake(ctx context.Context, limit time.Duration) error {
	if l.srv.cfg.Era == config.ModernEra {
		return l.handshakeModern(ctx, limit)
	}
	var discovered *discovery
	if l.shouldDiscover() && !l.srv.legacy.Load() {
		discovered = l.discover(l.ctx, slowDiscover)
		patience := l.srv.tune.discoverTimeout
		if !l.wire.isLocal() {
			patience = l.srv.tune.remoteDiscoverTimeout
		}
		if !discovered.await(ctx, patience) && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := l.Err(); err != nil {
			return err
		}
		if discovered.isModernOnly() {
			return l.openOffered(ctx, discovered)
		}
	}
	err := l.initialize(ctx, limit)
	switch {
	case err == nil:
		l.srv.legacy.Store(true)
		l.awaitVersions(discovered)
		return nil
	case ctx.Err() != nil, l.Err() != nil, l.wire.isLegacyOnly():
		return err
	case !l.shouldDiscover():
		return l.srv.newError(ConnectionError, errorReason(err)+" (era: legacy); set era: auto to try newer revisions", err)
	}
	if discovered != nil && discovered.offersModern() && l.wire.isLocal() {
		// It offers both, but server/discover chose the modern era, as with the official
		// Go SDK. A new process without that request accepts initialize.
		l.recordVersions(discovered)
		return errRestartLegacy
	}
	// initialize was refused. The server may be a modern one that started slowly or was
	// upgraded.
	if discovered == nil {
		discovered = l.discover(ctx, limit)
		defer discovered.stop()
	}
	if discovered.await(ctx, l.srv.tune.remoteDiscoverTimeout) && discovered.modern {
		return l.openModern(ctx, discovered)
	}
	if discovered.versions != nil {
		known := append([]string{modernRevision}, revisions...)
		return l.srv.newError(BadReply, fmt.Sprintf("speaks protocol revisions %s only; Goblin supports %s to %s",
			l.srv.quote(fmt.Sprintf("%q", discovered.versions), 200), known[len(known)-1], known[0]), err)
	}
	return err
}

func (l *link) shouldDiscover() bool {
	return !l.wire.isLegacyOnly() && l.srv.cfg.Era != config.LegacyEra
}

// openOffered opens the connection of a server that declares only modern revisions. Over
// stdio it tries initialize once: servers of the official TypeScript SDK may accept it
// anyway. Over HTTP it doesn't: servers of the official Go SDK accept initialize even if
// nothing works after it.
func (l *link) openOffered(ctx context.Context, discovered *discovery) error {
	if !l.wire.isLocal() || l.srv.modernOnly.Swap(true) {
		return l.openModern(ctx, discovered)
	}
	err := l.initialize(ctx, l.srv.tune.remoteDiscoverTimeout)
	switch {
	case err == nil:
		l.srv.modernOnly.Store(false)
		l.srv.legacy.Store(true)
		l.recordVersions(discovered)
		return nil
	case ctx.Err() != nil, l.Err() != nil:
		return err
	}
	return l.openModern(ctx, discovered)
}

const (
	// slowDiscover is the timeout of server/discover after initialize was answered.
	slowDiscover = 10 * time.Minute
	// maxDiscoverFailures is the number of connections that may end during
	// server/discover before it is no longer sent. It may be the cause.
	maxDiscoverFailures = 3
)

func (l *link) awaitVersions(discovered *discovery) {
	s := l.srv
	if discovered == nil && s.discoverCut.Swap(false) {
		discovered = l.discover(l.ctx, slowDiscover)
	}
	if discovered == nil {
		l.recordVersions(nil)
		return
	}
	select {
	case <-discovered.done:
		l.recordVersions(discovered)
		return
	default:
		l.recordVersions(nil)
	}
	l.spawn(func() {
		<-discovered.done // also closed with the connection
		if l.ctx.Err() != nil {
			s.discoverCut.Store(s.discoverCuts.Add(1) <= maxDiscoverFailures)
			return
		}
		l.recordVersions(discovered)
		if s.offersBothEras() && !l.wire.isLocal() {
			s.relist(l) // to find the arguments that go into headers
		}
	})
}

// recordVersions stores the revisions from server/discover, which is then not sent again.
func (l *link) recordVersions(discovered *discovery) {
	if discovered != nil {
		select {
		case <-discovered.done:
			l.srv.versions.Store(&discovered.versions)
		default:
		}
	}
	if known := l.srv.versions.Load(); known != nil {
		info := l.Info()
		info.Versions = *known
		l.info.Store(&info)
	}
}

type discovery struct {
	stop context.CancelFunc
	done chan struct{}
	// Valid after done is closed.

	modern   bool
	result   []byte
	fault    error // error of a modern server
	err      error
	versions []string
}

// discover sends server/discover. The request lasts until limit, stop or the end of ctx.
// A server that ignores it gets no cancellation and does not count as dead.
func (l *link) discover(ctx context.Context, limit time.Duration) *discovery {
	ctx, cancel := context.WithCancel(ctx)
	d := &discovery{stop: cancel, done: make(chan struct{})}
	if !l.spawn(func() {
		defer cancel()
		defer close(d.done)
		ask := func() (jsonrpc.Reply, error) {
			return l.exchange(&Call{Context: ctx, Method: "server/discover", Timeout: limit, handshake: true, probe: true, modern: true})
		}
		reply, err := ask()
		if err == nil && refusesListedVersion(reply.Error) {
			reply, err = ask() // once more: the server lists this revision
		}
		switch {
		case err != nil:
			d.err = err
		case reply.Error != nil:
			d.parseError(l.srv, reply.Error)
		default:
			d.parseResult(reply.Result)
		}
	}) {
		d.err = l.srv.newError(ConnectionError, "connection closed", jsonrpc.ErrClosed)
		close(d.done)
	}
	return d
}

// refusesListedVersion reports whether an error refuses the modern revision but lists it
// as supported.
func refusesListedVersion(object []byte) bool {
	e := jsonrpc.ParseErrorObject(object)
	return object != nil && e.Code == codeUnsupportedVersion && slices.Contains(parseVersions(rawjson.Get(e.Data, "supported")), modernRevision)
}

const maxVersions = 64

func (d *discovery) parseResult(result []byte) {
	d.versions = parseVersions(rawjson.Get(result, "supportedVersions"))
	if d.modern = slices.Contains(d.versions, modernRevision); d.modern {
		d.result = result
	}
}

func parseVersions(array []byte) (found []string) {
	for v := range rawjson.Elements(array) {
		if s, ok := rawjson.String(v); ok && len(s) <= 64 && len(found) < maxVersions {
			found = append(found, s)
		}
	}
	return found
}

func (d *discovery) parseError(s *Server, object []byte) {
	fault := s.rpcError(object)
	switch fault.object.Code {
	case codeUnsupportedVersion:
		d.versions = parseVersions(rawjson.Get(fault.object.Data, "supported"))
	case codeHeaderMismatch, codeMissingCapability:
		d.modern, d.fault = true, fault
	}
}

func (d *discovery) await(ctx context.Context, limit time.Duration) bool {
	select {
	case <-d.done:
		return true
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return false
}

// errRestartLegacy requests a new process whose first request is initialize.
var errRestartLegacy = errors.New("refused initialize after server/discover")

func (d *discovery) offersModern() bool {
	select {
	case <-d.done:
		return d.result != nil
	default:
		return false
	}
}

// isModernOnly reports whether to skip initialize.
func (d *discovery) isModernOnly() bool {
	return d.offersModern() && !slices.ContainsFunc(d.versions, func(v string) bool { return slices.Contains(revisions, v) })
}

func (l *link) openModern(ctx context.Context, d *discovery) error {
	if d.result == nil {
		return l.srv.newError(ConnectionError, fmt.Sprintf("refused server/discover: %v", d.fault), d.fault)
	}
	info := Info{Era: Modern, SecondEra: l.second, Protocol: modernRevision, Versions: d.versions}
	si := rawjson.Path(d.result, "_meta", wire.ServerInfo)
	if !rawjson.IsObject(si) {
		si = rawjson.Get(d.result, "serverInfo") // as in drafts
	}
	if err := l.setServerInfo(&info, d.result, si); err != nil {
		return err
	}
	l.listen(ctx)
	return nil
}

func (l *link) initialize(ctx context.Context, timeout time.Duration) error {
	params := append([]byte(`{"protocolVersion":"`), revisions[0]...)
	params = append(params, `","capabilities":`...)
	params = append(params, l.srv.unitCapabilities(l.Unit())...)
	params = append(params, `,"clientInfo":{"name":"goblin","version":`...)
	params = rawjson.AppendString(params, l.srv.opt.Version)
	params = append(params, `}}`...)

	reply, err := l.exchange(&Call{Context: ctx, Method: "initialize", Params: params, Timeout: timeout, handshake: true, initialize: true})
	if err != nil {
		return err
	}
	if reply.Error != nil {
		cause := l.srv.rpcError(reply.Error)
		return l.srv.newError(ConnectionError, fmt.Sprintf("refused initialize: %v", cause), cause)
	}
	version, ok := rawjson.String(rawjson.Get(reply.Result, "protocolVersion"))
	if !ok {
		return l.srv.newError(BadReply, "answered initialize without a protocolVersion", nil)
	}
	if !slices.Contains(revisions, version) {
		return l.srv.newError(BadReply, fmt.Sprintf("speaks protocol revision %q only; Goblin supports %s to %s",
			l.srv.quote(version, 40), revisions[len(revisions)-1], revisions[0]), nil)
	}
	info := Info{Era: Legacy, Protocol: version}
	if err := l.setServerInfo(&info, reply.Result, rawjson.Get(reply.Result, "serverInfo")); err != nil {
		return err
	}
	return l.sendInitialized(ctx)
}

// Limits of the server's own data, in bytes. It is stored per connection, and
// capabilities are read by each call.
const (
	maxCapabilities = 256 << 10
	maxServerInfo   = 256 << 10
	maxInstructions = 64 << 10
)

func (l *link) setServerInfo(info *Info, result, server []byte) error {
	info.Capabilities = []byte("{}")
	if caps := rawjson.Get(result, "capabilities"); rawjson.IsObject(caps) {
		caps, complaint := extensions.LimitExtensions(caps)
		if complaint != "" {
			l.srv.note(slog.LevelWarn, complaint)
		}
		if len(caps) > maxCapabilities {
			return l.srv.newError(BadReply, fmt.Sprintf("declares capabilities over %d KiB", maxCapabilities>>10), nil)
		}
		info.Capabilities = bytes.Clone(caps) // a slice would retain the whole answer
	}
	if rawjson.IsObject(server) && len(server) <= maxServerInfo {
		info.ServerInfo = bytes.Clone(server)
	}
	text := rawjson.GetString(result, "instructions")
	if len(text) > maxInstructions {
		text = strings.ToValidUTF8(text[:maxInstructions], "") + "…"
	}
	info.Instructions = text
	l.info.Store(info)
	return nil
}

// isDiscoverFault reports whether server/discover caused err, so that a process without
// it may work.
func (l *link) isDiscoverFault(err error) bool {
	if !l.wire.isLocal() || !l.shouldDiscover() || l.srv.cfg.Era == config.ModernEra || !errors.Is(err, errRestartLegacy) && l.Err() == nil {
		return false
	}
	l.srv.legacy.Store(!l.srv.modernOnly.Load())
	return true
}
