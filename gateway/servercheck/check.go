package servercheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/doctor"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

// Options configure a check.
type Options struct {
	doctor.Options
	Read      bool // read the listed resources
	MaxTokens int  // of all tool definitions; 0 means DefaultMaxTokens
	// AnswerTime is the maximum time for an answer except to initialize; 0 means 10 s.
	AnswerTime time.Duration
	// ExitTime is the maximum time for an exit after stdin is closed and after SIGTERM; 0
	// means 5 s.
	ExitTime time.Duration
	// SlowTime is the maximum time of a start or a page that is not slow; 0 means 5 s.
	SlowTime time.Duration
	Progress func(step string) // may be nil
}

// DefaultMaxTokens is the default of Options.MaxTokens.
const DefaultMaxTokens = 10_000

const (
	// maxPerRule is the maximum number of findings of one rule.
	maxPerRule = 20
	maxText    = 600 // bytes of a finding
	// probeTime is the maximum time for an answer to the request that follows one without
	// an answer.
	probeTime = 3 * time.Second
)

// link sends requests to the server.
type link interface {
	// ask sends a request and waits for its answer. params is a raw object or nil.
	ask(ctx context.Context, method string, params []byte, limit time.Duration) answer
}

type checker struct {
	o Options
	s *config.Server // resolved
	r *Result

	modern       bool          // the server supports only revisions from 2026-07-28 on
	patience     time.Duration // of the second process after its stdin is closed
	capabilities []byte
	entries      map[registry.Kind][][]byte

	mu      sync.Mutex // guards the findings in r and the fields below
	counts  map[string]int
	known   map[Finding]bool
	stopped bool // the process exited unexpectedly
	mute    bool // the server answers no further request
}

// Run checks a server. It returns the error of ctx with incomplete findings.
func Run(ctx context.Context, o Options, defined *config.Server) (*Result, error) {
	o.AnswerTime = cmp.Or(o.AnswerTime, 10*time.Second)
	o.ExitTime = cmp.Or(o.ExitTime, 5*time.Second)
	o.SlowTime = cmp.Or(o.SlowTime, 5*time.Second)
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	c := &checker{
		o: o, counts: map[string]int{}, known: map[Finding]bool{}, entries: map[registry.Kind][][]byte{},
		r: &Result{Server: defined.Name, Transport: string(defined.Type), Entries: map[string]int{}, ListMs: map[string]float64{}, Tools: []Tool{}, Findings: []Finding{}},
	}
	resolved, err := defined.Resolve(ctx, o.Resolve)
	if err != nil || defined.Problem != "" {
		c.diagnose(ctx, defined)
		return c.r, ctx.Err()
	}
	if len(resolved.Secrets) > 0 {
		mask := new(config.Mask)
		mask.AddServerSecrets(resolved)
		c.o.Redact = func(s string) string { return mask.String(o.Redact(s)) }
	}
	c.s = o.Definition(resolved.Server)
	if c.s.Type == config.Stdio {
		c.checkLocal(ctx, defined)
	} else {
		c.checkRemote(ctx, defined)
	}
	if c.r.Diagnosis == nil {
		c.checkEntries()
	}
	for _, rule := range slices.Sorted(maps.Keys(c.counts)) {
		if more := c.counts[rule] - maxPerRule; more > 0 {
			c.append(rule, find(rule).Level, "more", fmt.Sprintf("%s like the above", termtext.Count(more, "finding")))
		}
	}
	c.r.finish()
	return c.r, ctx.Err()
}

// diagnose finds the reason for a failed start. It reports whether there is one.
func (c *checker) diagnose(ctx context.Context, defined *config.Server) bool {
	c.o.Progress("finding the reason")
	d := doctor.Server(ctx, c.o.Options, defined)
	if d.State != report.Broken {
		return false
	}
	c.failed(&d)
	return true
}

func (c *checker) failed(d *report.Diagnosis) {
	c.r.Diagnosis = d
	for _, f := range d.Findings() {
		if f.State == report.Broken {
			c.add("start/failed", f.Name, "%s", strings.TrimSuffix(f.Text+"; "+f.Fix, "; "))
		}
	}
}

// add adds a finding. The arguments may be untrusted.
func (c *checker) add(rule, subject, format string, args ...any) {
	c.addLevel(find(rule).Level, rule, subject, format, args...)
}

func (c *checker) addLevel(level, rule, subject, format string, args ...any) {
	clean := func(s string) string {
		return termtext.Line(termtext.Truncate(c.o.Redact(strings.ToValidUTF8(s, "\uFFFD")), maxText))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	subject, text := clean(subject), clean(fmt.Sprintf(format, args...))
	key := Finding{Rule: rule, Subject: subject, Text: text}
	if c.known[key] {
		return
	}
	if c.counts[rule]++; c.counts[rule] <= maxPerRule {
		c.known[key] = true
		c.append(rule, level, subject, text)
	}
}

func (c *checker) append(rule, level, subject, text string) {
	r := find(rule)
	c.r.Findings = append(c.r.Findings, Finding{Rule: rule, Level: level, Subject: subject, Text: text, Why: r.Why, Fix: r.Fix})
}

// ask reports a missing answer and an exit, and returns false then. It sends nothing after
// an exit, or to a server that answers nothing.
func (c *checker) ask(ctx context.Context, l link, method string, params []byte) (a answer, ok bool) {
	if c.stopped || c.mute || ctx.Err() != nil {
		return a, false
	}
	a = c.send(ctx, l, method, params, c.o.AnswerTime)
	switch {
	case a.err == nil:
		return a, true
	case ctx.Err() != nil:
		return a, false
	case errors.Is(a.err, errExited):
		c.stopped = true
		c.add("answer/crash", method, "%s", exitText(l))
		return a, false
	case errors.Is(a.err, errSilent):
		c.add("answer/none", method, "no answer within %s", termtext.Duration(c.o.AnswerTime))
	default:
		c.add("answer/none", method, "%v", a.err)
	}
	probe := "ping"
	if c.modern {
		probe = "server/discover"
	}
	if b := c.send(ctx, l, probe, nil, min(probeTime, c.o.AnswerTime)); b.err != nil && !errors.Is(b.err, errExited) && ctx.Err() == nil {
		c.mute = true
		c.add("answer/none", probe, "no answer either, so the check sent no more requests")
	}
	return a, false
}

func (c *checker) send(ctx context.Context, l link, method string, params []byte, limit time.Duration) answer {
	if p, local := l.(*process); local && c.modern && p != nil {
		params = modernParams(params)
	}
	return l.ask(ctx, method, params, limit)
}

func exitText(l link) string {
	p, ok := l.(*process)
	if !ok {
		return "the connection closed"
	}
	text := "the process closed its stdout"
	if p.waitExit(context.Background(), drainTime) {
		text = "the process exited"
		if p.exitErr != nil {
			text += ": " + p.exitErr.Error()
		}
	}
	if last := p.lastLine(); last != "" {
		text += "; its last line on stderr: " + clip(last)
	}
	return text
}

const (
	newest  = "2025-11-25"
	modern  = "2026-07-28"
	unknown = "2099-12-31"
	// identity declares what most clients support: some servers offer less otherwise.
	identity = `"capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"goblin-check","version":"1"}`
)

var versions = []string{newest, "2025-06-18", "2025-03-26", "2024-11-05"}

// modernParams adds the members of _meta that the stateless protocol requires.
func modernParams(params []byte) []byte {
	const prefix = `"io.modelcontextprotocol/`
	meta := `{` + prefix + `protocolVersion":"` + modern + `",` + prefix + `clientCapabilities":{},` + prefix + `clientInfo":{"name":"goblin-check","version":"1"}}`
	if params == nil {
		params = []byte(`{}`)
	}
	return rawjson.SetMember(params, "_meta", []byte(meta))
}

func (c *checker) checkLocal(ctx context.Context, defined *config.Server) {
	showed := c.showWait("starting the server", c.s.StartupTimeout)
	defer showed()
	p, err := c.start(c.s)
	if err != nil {
		showed()
		if !c.diagnose(ctx, defined) {
			c.add("start/unstable", "process", "%v", err)
		}
		return
	}
	defer p.stop(ctx, min(c.o.ExitTime, time.Second))
	usable, silent := c.shakeHands(ctx, p)
	showed()
	if !usable {
		p.stop(ctx, min(c.o.ExitTime, time.Second))
		if silent {
			c.o.Silent = &doctor.Silence{Lines: p.errorLines(), Banner: p.out.banner}
		}
		if ctx.Err() == nil && !c.diagnose(ctx, defined) {
			c.add("handshake/failed", "initialize", "no usable answer, although Goblin can connect")
		}
		return
	}
	c.checkRequests(ctx, p)
	c.settle(ctx, p)
	c.checkNotified(p)
	if ctx.Err() != nil {
		return
	}
	c.o.Progress("stopping the server")
	c.checkExit(ctx, p)
	if !c.modern && !c.mute && ctx.Err() == nil {
		c.o.Progress("starting the server again")
		c.checkSecondStart(ctx)
	}
}

// showWait shows the seconds of a step until the returned function is called.
func (c *checker) showWait(step string, limit time.Duration) (stop func()) {
	c.o.Progress(step)
	began, ended := time.Now(), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.o.Progress(fmt.Sprintf("%s: %s of %s", step, termtext.Duration(time.Since(began).Truncate(time.Second)), termtext.Duration(limit)))
			case <-ended:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		showing.Wait()
	})
}

// shakeHands reports whether the server can be used, and whether it did not answer at all.
func (c *checker) shakeHands(ctx context.Context, p *process) (usable, silent bool) {
	a := p.ask(ctx, "initialize", []byte(`{"protocolVersion":"`+newest+`",`+identity+`}`), c.s.StartupTimeout)
	took := time.Since(p.began)
	if a.err != nil {
		return false, errors.Is(a.err, errSilent)
	}
	if a.result == nil {
		d := p.ask(ctx, "server/discover", modernParams(nil), c.o.AnswerTime)
		if d.err != nil || d.result == nil {
			return false, false
		}
		for v := range rawjson.Elements(arrayOf(d.result, "supportedVersions")) {
			text, _ := rawjson.String(v)
			c.modern = c.modern || text == modern
		}
		if !c.modern {
			return false, false
		}
		a, c.r.Protocol = d, modern
	}
	c.r.InitializeMs = millis(took)
	if took > c.o.SlowTime {
		c.add("start/slow", "initialize", "answered after %s", termtext.Duration(took))
	}
	c.readHandshake(a.result)
	if !c.modern {
		p.notify("notifications/initialized")
	}
	p.out.setReady()
	return true, false
}

func (c *checker) readHandshake(result []byte) {
	if !rawjson.IsObject(result) {
		c.add("handshake/result", "initialize", "the result is not an object")
		result = []byte(`{}`)
	}
	info := rawjson.Get(result, "serverInfo")
	if !c.modern {
		version, ok := rawjson.String(rawjson.Get(result, "protocolVersion"))
		c.r.Protocol = termtext.Line(clip(version))
		switch {
		case !ok:
			c.add("handshake/result", "initialize", "protocolVersion is missing or not a text")
		case !slices.Contains(versions, version):
			c.add("handshake/version", "initialize", "answered with %q", clip(version))
		}
		for _, name := range []string{"name", "version"} {
			if !rawjson.IsObject(info) || !rawjson.IsString(rawjson.Get(info, name)) {
				c.add("handshake/result", "initialize", "serverInfo.%s is missing or not a text", name)
			}
		}
	}
	if rawjson.IsObject(info) {
		c.nameServer(info)
	}
	c.capabilities = rawjson.Get(result, "capabilities")
	if !rawjson.IsObject(c.capabilities) {
		c.add("handshake/result", "initialize", "capabilities is missing or not an object")
		c.capabilities = []byte(`{}`)
	}
	for _, name := range []string{"tools", "prompts", "resources", "logging", "completions", "experimental"} {
		if v := rawjson.Get(c.capabilities, name); v != nil && !rawjson.IsObject(v) {
			c.add("capability/shape", "initialize", "capabilities.%s is %s", name, quote(v))
		}
	}
	if v := rawjson.Get(result, "instructions"); v != nil {
		text, ok := rawjson.String(v)
		if !ok {
			c.add("handshake/result", "initialize", "instructions is not a text")
		}
		c.checkInstructions(text)
	}
	c.checkMeta("initialize", result)
}

func (c *checker) nameServer(info []byte) {
	name := clip(rawjson.GetString(info, "name") + " " + rawjson.GetString(info, "version"))
	c.r.Name = termtext.Line(strings.TrimSpace(c.o.Redact(name)))
}

// has reports whether a capability was declared and is neither false nor null.
func (c *checker) has(path ...string) bool {
	v := rawjson.Path(c.capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// settle lets the server finish what it began at the handshake. Some servers ask for roots
// a moment later and would wait for the answer after their stdin was closed.
func (c *checker) settle(ctx context.Context, p *process) {
	if !c.stopped && !c.mute && p.waitExit(ctx, min(c.o.ExitTime, time.Second)) {
		c.stopped = true
		c.add("answer/crash", "process", "without a request, %s", exitText(p))
	}
}

func (c *checker) checkExit(ctx context.Context, p *process) {
	gone := c.stopped
	patience := c.o.ExitTime
	if c.mute {
		patience = min(patience, time.Second)
	}
	e := p.stop(ctx, patience)
	limit := termtext.Duration(patience)
	c.patience = 2 * time.Second
	if !e.stdin {
		c.patience = 100 * time.Millisecond // it would wait in vain
	}
	switch {
	case ctx.Err() != nil || gone:
		return
	case !e.stdin && !e.signal:
		c.add("exit/stdin", "process", "still runs %s after its stdin was closed", limit)
		if runtime.GOOS != "windows" { // it has no such signal
			c.add("exit/signal", "process", "still runs %s after SIGTERM", limit)
		}
	case !e.stdin:
		c.add("exit/stdin", "process", "still runs %s after its stdin was closed; SIGTERM stopped it", limit)
	case e.code < 0 && p.exitErr != nil:
		c.add("exit/code", "process", "crashed after its stdin was closed: %v", p.exitErr)
	case e.code != 0:
		c.add("exit/code", "process", "exited with code %d after its stdin was closed", e.code)
	}
	switch {
	case p.orphans > 0:
		c.add("exit/orphans", "process", "%s still ran after its exit", termtext.Count(p.orphans, "child process"))
	case p.held:
		c.add("exit/orphans", "process", "a process outside of its process group still holds stdout")
	}
}

// checkSecondStart sends a protocol version that does not exist, and compares the order of
// lists with the first start.
func (c *checker) checkSecondStart(ctx context.Context) {
	p, err := c.start(c.s)
	if err != nil {
		c.add("start/unstable", "process", "the second start failed: %v", err)
		return
	}
	defer p.stop(ctx, min(c.o.ExitTime, c.patience))
	c.stopped = false
	// The first start shows how long a start takes.
	limit := min(c.s.StartupTimeout, max(c.o.AnswerTime, 2*time.Duration(c.r.InitializeMs)*time.Millisecond))
	a := p.ask(ctx, "initialize", []byte(`{"protocolVersion":"`+unknown+`",`+identity+`}`), limit)
	version, _ := rawjson.String(rawjson.Get(a.result, "protocolVersion"))
	switch {
	case ctx.Err() != nil:
		return
	case a.err != nil && errors.Is(a.err, errExited):
		c.add("start/unstable", "process", "the second start failed: %s", exitText(p))
		return
	case a.err != nil || a.fault != nil:
		c.add("handshake/unknown-version", "initialize", "requested %q: %s", unknown, cmp.Or(clip(string(a.fault)), "no answer"))
		return
	case version == unknown:
		c.add("handshake/echoed-version", "initialize", "requested %q and got it", unknown)
	}
	p.out.setReady()
	p.notify("notifications/initialized")
	for i := range kinds {
		if k := &kinds[i]; len(c.entries[k.kind]) > 1 {
			c.compareOrder(ctx, p, k, "two starts")
		}
	}
}

func (c *checker) checkRemote(ctx context.Context, defined *config.Server) {
	c.o.Progress("connecting")
	connected := false
	o := c.o.Options
	o.OnConnected = func(ctx context.Context, conn upstream.Conn) {
		connected = true
		info := conn.Info()
		c.modern, c.r.Protocol = info.Era == upstream.Modern, info.Protocol
		c.capabilities = info.Capabilities
		if rawjson.IsObject(info.ServerInfo) {
			c.nameServer(info.ServerInfo)
		}
		c.checkInstructions(info.Instructions)
		c.checkRequests(ctx, connection{conn})
	}
	d := doctor.Server(ctx, o, defined)
	if !connected {
		c.failed(&d)
	}
}

// connection sends requests over Goblin's own client.
type connection struct{ upstream.Conn }

func (c connection) ask(ctx context.Context, method string, params []byte, limit time.Duration) answer {
	began := time.Now()
	reply, err := c.Call(&upstream.Call{Context: ctx, Method: method, Params: params, Timeout: limit, ForwardInput: true, AcceptTask: true})
	a := answer{result: slices.Clone(reply.Result), fault: slices.Clone(reply.Error), took: time.Since(began)}
	failed, known := errors.AsType[*upstream.Error](err)
	switch {
	case err == nil:
	case c.Err() != nil:
		a.err = errExited
	case known && failed.Code == upstream.RequestTimeout:
		a.err = errSilent
	default:
		a.err = err
	}
	return a
}
