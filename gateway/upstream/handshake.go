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
		return l.srv.newError(ConnectionError, errorReason(err)+" (era: legacy); era: auto finds out whether it speaks a newer revision", err)
	}
	if discovered != nil && discovered.offersModern() && l.wire.isLocal() {
		// It offers both, and takes the question for the choice of one, as the
		// official Go SDK does. A process that was not asked takes the other.
		l.recordVersions(discovered)
		return errRestartLegacy
	}
	// It refused. A modern one may only have been slow to start, or was
	// replaced by its next version since it was legacy.
	if discovered == nil {
		discovered = l.discover(ctx, limit)
		defer discovered.stop()
	}
	if discovered.await(ctx, l.srv.tune.remoteDiscoverTimeout) && discovered.modern {
		return l.openModern(ctx, discovered)
	}
	if discovered.versions != nil {
		known := append([]string{modernRevision}, revisions...)
		return l.srv.newError(BadReply, fmt.Sprintf("speaks protocol revisions %s only; known are %s to %s",
			l.srv.quote(fmt.Sprintf("%q", discovered.versions), 200), known[len(known)-1], known[0]), err)
	}
	return err
}

// shouldDiscover reports whether to send server/discover before initialize.
func (l *link) shouldDiscover() bool {
	return !l.wire.isLegacyOnly() && l.srv.cfg.Era != config.LegacyEra
}

// openOffered opens the connection of a server that offers the modern era alone.
// Over stdio it is asked for the other one all the same, once: servers of the
// official TypeScript SDK name the modern revisions only, whether or not they
// take initialize. Over HTTP the answer would tell nothing: servers of the
// official Go SDK answer initialize also when they serve nothing after it.
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
	// slowDiscover is how long a server may take to answer server/discover after
	// it has answered initialize.
	slowDiscover = 10 * time.Minute
	// maxDiscoverFailures is the number of connections that may end during server/discover until it is no
	// longer sent. The request itself may be the cause.
	maxDiscoverFailures = 3
)

// awaitVersions waits for a pending server/discover and records its versions.
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
		<-discovered.done // at the end of the connection, too
		if l.ctx.Err() != nil {
			s.discoverCut.Store(s.discoverCuts.Add(1) <= maxDiscoverFailures)
			return
		}
		l.recordVersions(discovered)
		if s.offersBothEras() && !l.wire.isLocal() {
			s.relist(l) // which arguments go into headers was not looked for
		}
	})
}

// recordVersions stores the revisions that a server named in server/discover. It is not asked again.
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
			return l.exchange(&Call{Context: ctx, Method: "server/discover", Timeout: limit, handshake: true, probe: true, modern: true})
		}
		reply, err := ask()
		if err == nil && refusesListedVersion(reply.Error) {
			reply, err = ask() // with the revision that it names, which the first one had, too
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
		d.err = l.srv.newError(ConnectionError, "the connection was closed", jsonrpc.ErrClosed)
		close(d.done)
	}
	return d
}

// refusesListedVersion reports whether an error refuses the modern revision but lists it as supported.
func refusesListedVersion(object []byte) bool {
	e := jsonrpc.ParseErrorObject(object)
	return object != nil && e.Code == codeUnsupportedVersion && slices.Contains(parseVersions(rawjson.Get(e.Data, "supported")), modernRevision)
}

// maxVersions bounds what a server says that it speaks.
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
		// A modern server, but not of a revision that we speak.
		d.versions = parseVersions(rawjson.Get(fault.object.Data, "supported"))
	case codeHeaderMismatch, codeMissingCapability:
		d.modern, d.fault = true, fault
	}
}

// await waits for the response. It reports false if none arrives within limit.
func (d *discovery) await(ctx context.Context, limit time.Duration) bool {
	select {
	case <-d.done:
		return true
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return false
}

// errRestartLegacy asks for a new process that gets initialize as its first request.
var errRestartLegacy = errors.New("refused initialize after server/discover")

// offersModern reports whether a response arrived and offers the modern era.
func (d *discovery) offersModern() bool {
	select {
	case <-d.done:
		return d.result != nil
	default:
		return false
	}
}

// isModernOnly reports whether to open the modern era without trying initialize.
func (d *discovery) isModernOnly() bool {
	return d.offersModern() && !slices.ContainsFunc(d.versions, func(v string) bool { return slices.Contains(revisions, v) })
}

// openModern opens the connection in the modern era.
func (l *link) openModern(ctx context.Context, d *discovery) error {
	if d.result == nil {
		return l.srv.newError(ConnectionError, fmt.Sprintf("refused server/discover: %v", d.fault), d.fault)
	}
	info := Info{Era: Modern, SecondEra: l.second, Protocol: modernRevision, Versions: d.versions}
	si := rawjson.Path(d.result, "_meta", wire.ServerInfo)
	if !rawjson.IsObject(si) {
		si = rawjson.Get(d.result, "serverInfo") // where drafts of the revision had it
	}
	if err := l.setServerInfo(&info, d.result, si); err != nil {
		return err
	}
	l.listen(ctx)
	return nil
}

// initialize opens the connection in the legacy era.
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
		return l.srv.newError(BadReply, fmt.Sprintf("speaks protocol revision %q only; known are %s to %s",
			l.srv.quote(version, 40), revisions[len(revisions)-1], revisions[0]), nil)
	}
	info := Info{Era: Legacy, Protocol: version}
	if err := l.setServerInfo(&info, reply.Result, rawjson.Get(reply.Result, "serverInfo")); err != nil {
		return err
	}
	return l.sendInitialized(ctx)
}

// Bounds of what a server says of itself, in bytes. It is kept with each of its
// connections, and its capabilities are looked at in each call.
const (
	maxCapabilities = 256 << 10
	maxServerInfo   = 256 << 10
	maxInstructions = 64 << 10
)

// setServerInfo stores what the result of the handshake says about the server.
func (l *link) setServerInfo(info *Info, result, server []byte) error {
	info.Capabilities = []byte("{}")
	if caps := rawjson.Get(result, "capabilities"); rawjson.IsObject(caps) {
		caps, complaint := extensions.LimitExtensions(caps)
		if complaint != "" {
			l.srv.note(slog.LevelWarn, complaint)
		}
		if len(caps) > maxCapabilities {
			return l.srv.newError(BadReply, fmt.Sprintf("declares capabilities of more than %d KiB", maxCapabilities>>10), nil)
		}
		info.Capabilities = bytes.Clone(caps) // or all of the answer would be kept
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

// isDiscoverFault reports whether server/discover caused err, so that a process without that request may
// work.
func (l *link) isDiscoverFault(err error) bool {
	if !l.wire.isLocal() || !l.shouldDiscover() || l.srv.cfg.Era == config.ModernEra || !errors.Is(err, errRestartLegacy) && l.Err() == nil {
		return false
	}
	l.srv.legacy.Store(!l.srv.modernOnly.Load())
	return true
}
