// Package recorder writes the traffic and the catalog of a gateway to files.
//
// Package recording defines the format. A [Recorder] is a sink of package telemetry. Read
// loops only append to a bounded queue. One goroutine writes it to the current file twice
// a second. If the queue is full, records are dropped, and a line reports
// their number. Another goroutine compresses finished files and removes old ones. An error
// of the disk stops the recording, never the gateway.
//
// Secrets are masked with the placeholders that the folder's key determines.
package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/recording"
)

// processStart is the same in all headers of this process, whose requests share their
// Numbers.
var processStart = time.Now()

const (
	// flushInterval is the longest time that a record waits to be written.
	flushInterval = 500 * time.Millisecond
	// catalogPause limits how often lines about servers and sessions are written.
	catalogPause = 50 * time.Millisecond
	// manySessions is the number from which views are too slow for a read loop. Lines about
	// sessions may then follow their first requests.
	manySessions = 256
	// slowRequest is the time after which a request gets a line before its answer.
	slowRequest = time.Second
)

// Options configures a Recorder.
type Options struct {
	Folder   string
	Max      int64         // bytes of all files in the folder
	Age      time.Duration // maximum age of a file
	Bodies   bool          // record params and answers
	Version  string        // of Goblin
	Config   string        // base name of the config, or "demo"
	Settings json.RawMessage
	Registry *registry.Registry
	Mask     *config.Mask // gets the key of the folder
	Logger   *slog.Logger
	// AddSink connects the sink until remove is called.
	AddSink func(telemetry.Sink) (remove func())
	// InFlight returns the unanswered requests, masked; nil: none.
	InFlight func() []registry.InFlight
	// Profile returns the profile of a session, or ""; nil: none.
	Profile func(session string) string
	// OnStop is called once if an error stops the recording. It may be nil, and must not
	// call Close.
	OnStop func(error)
}

// Status describes a recording.
type Status struct {
	Folder  string
	File    string // base name
	Bytes   int64  // of the folder
	Dropped int    // records
	Since   time.Time
	Error   error // of a recording that stopped, or nil
}

// Recorder records until Close, or until the disk fails.
type Recorder struct {
	o          Options
	folder     *folder
	queue      queue
	keep       *keeper
	removeSink func()
	started    time.Time
	stopped    atomic.Bool
	dropped    atomic.Int64
	problem    atomic.Pointer[error]
	settings   chan json.RawMessage // capacity one: those of the next file
	changes    <-chan registry.Changes
	viewMu     sync.Mutex           // held while a view is made and queued
	view       atomic.Pointer[view] // the last one
	cancel     context.CancelFunc
	work       sync.WaitGroup

	// The writer's goroutine owns these.
	file    *writer
	catalog *catalog
	current json.RawMessage // settings of the current file
}

// Start opens the folder, writes the beginning of a file and records from then on. It
// fails if another process records into the folder, or other users could read it.
func Start(o Options) (*Recorder, error) {
	f, key, err := openFolder(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	o.Folder = f.path
	o.Mask.SetKey(key)
	r := &Recorder{
		o: o, folder: f, started: time.Now(), current: o.Settings, settings: make(chan json.RawMessage, 1),
		queue: queue{full: make(chan struct{}, 1)},
		keep:  &keeper{folder: f, limit: o.Max, age: o.Age, wake: make(chan struct{}, 1)},
		file:  newWriter(f, o.Max),
	}
	r.catalog = &catalog{o: &r.o}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.changes = o.Registry.Watch(ctx, registry.Servers, registry.Sessions, registry.Tools|registry.Prompts|registry.Resources|registry.Templates|registry.Skills|registry.ListChanged)
	r.catalog.view = newView(&r.o, nil)
	r.view.Store(r.catalog.view)
	err = f.removeLeftovers()
	if err == nil {
		err = r.newFile(time.Now())
	}
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("record into %s: %w", f.path, err), f.close())
	}
	r.removeSink = o.AddSink(r)
	r.work.Go(func() { r.run(ctx) })
	r.work.Go(func() {
		r.keep.run(ctx, func(err error) { o.Logger.Warn("recordings not tidied", "folder", f.path, "err", err) })
	})
	return r, nil
}

// Record implements [telemetry.Sink].
func (r *Recorder) Record(rec *registry.TrafficRecord, full telemetry.Bodies) {
	if r.stopped.Load() {
		return
	}
	if len(r.changes) > 0 && len(r.view.Load().sessions) < manySessions { // before the record that may depend on them
		r.AddView()
	}
	var b encodedBodies
	if r.o.Bodies {
		var ok bool
		if b, ok = inlineBodies(r.o.Mask, rec, &full); !ok {
			r.queue.addLarge(rec, full)
			return
		}
	} else if len(rec.Events) > 0 {
		plain := *rec
		plain.Events = registry.WithoutQuotes(rec.Events)
		rec = &plain
	}
	buffer := lineBuffers.Get().(*[]byte)
	*buffer = appendRecord((*buffer)[:0], rec, full.Answered, b)
	r.queue.add(*buffer)
	lineBuffers.Put(buffer)
}

// AddView records the current servers, lists and sessions. The recorder does so itself
// soon after a change, and before the next record. A call is necessary before changes that
// follow each other at once.
func (r *Recorder) AddView() {
	r.viewMu.Lock()
	defer r.viewMu.Unlock()
	select {
	case <-r.changes: // the view contains them
	default:
	}
	v := newView(&r.o, r.view.Load())
	r.queue.addView(v)
	r.view.Store(v)
}

// SetSettings starts a file with other settings, if they differ.
func (r *Recorder) SetSettings(settings json.RawMessage) {
	select {
	case <-r.settings: // an older one
	default:
	}
	r.settings <- settings
}

// Status returns the state of the recording.
func (r *Recorder) Status() Status {
	s := Status{Folder: r.o.Folder, Bytes: r.keep.size.Load(), Dropped: int(r.dropped.Load()), Since: r.started}
	if name := r.keep.current.Load(); name != nil {
		s.File = *name
	}
	if err := r.problem.Load(); err != nil {
		s.Error = *err
	}
	return s
}

// Close writes the rest, finishes the file and releases the folder.
func (r *Recorder) Close() error {
	r.removeSink()
	r.cancel()
	r.work.Wait()
	var err error
	if r.problem.Load() == nil { // else the disk is probably full
		err = r.keep.compress(r.file.name, func(time.Duration) bool { return true })
	}
	return errors.Join(err, r.folder.close())
}

// run writes until ctx is done or an error occurs.
func (r *Recorder) run(ctx context.Context) {
	err := r.writeUntil(ctx)
	r.stopped.Store(true)
	if err == nil {
		err = r.finish(nil)
	}
	if err != nil {
		r.fail(err)
	}
}

func (r *Recorder) writeUntil(ctx context.Context) error {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	watched := r.changes
	var pause <-chan time.Time
	for {
		ticked := false
		select {
		case <-ctx.Done():
			r.AddView()
			return r.flush(true)
		case settings := <-r.settings:
			if err := r.changeSettings(settings); err != nil {
				return err
			}
			continue
		case _, ok := <-watched:
			if watched = nil; ok {
				pause = time.After(catalogPause)
				r.AddView()
			}
		case <-pause:
			watched, pause = r.changes, nil
			continue
		case <-r.queue.full:
		case <-tick.C:
			ticked = true
		}
		if err := r.flush(ticked); err != nil {
			return err
		}
	}
}

// flush writes the queue, and starts another file when one is full. With slow it also
// writes the slow requests.
func (r *Recorder) flush(slow bool) error {
	items, dropped := r.queue.take()
	now := time.Now()
	if err := r.writeItems(items, dropped); err != nil {
		return err
	}
	last, err := r.catalog.appendClosed(nil, now)
	if err != nil {
		return err
	}
	if slow {
		last = r.catalog.appendRunning(last, now)
	}
	if err := r.file.write(last); err != nil {
		return err
	}
	return r.rotateIfFull()
}

func (r *Recorder) rotateIfFull() error {
	now := time.Now()
	r.keep.grow(r.file.takeWritten())
	if !r.file.isFull(now) {
		return nil
	}
	return r.rotate(now)
}

func (r *Recorder) rotate(now time.Time) error {
	if err := r.finish(nil); err != nil {
		return err
	}
	return r.newFile(now)
}

func (r *Recorder) changeSettings(settings json.RawMessage) error {
	if string(settings) == string(r.current) {
		return nil
	}
	r.AddView()
	if err := r.flush(false); err != nil {
		return err
	}
	r.current = settings
	return r.rotate(time.Now())
}

func (r *Recorder) writeItems(items []item, dropped int) error {
	for i, one := range items {
		lines, err := one.lines, error(nil)
		switch {
		case one.large != nil:
			lines, err = r.encodeLarge(one.large)
		case one.view != nil:
			lines, err = r.catalog.appendChanges(nil, one.view)
		}
		if err != nil {
			return err
		}
		if err := r.file.write(lines); err != nil {
			return err
		}
		r.queue.reuse(one.lines)
		items[i] = item{} // frees the bodies
		if err := r.rotateIfFull(); err != nil {
			return err
		}
	}
	if dropped == 0 {
		return nil
	}
	r.dropped.Add(int64(dropped))
	line, err := appendLine(nil, &recording.Line{
		Type: recording.TypeDropped, Time: time.Now(), Count: dropped, Error: "more traffic than the recorder could write; its queue was full",
	})
	if err != nil {
		return err
	}
	return r.file.write(line)
}

// encodeLarge masks the bodies of a record and stores those over the limit in files.
func (r *Recorder) encodeLarge(one *largeRecord) ([]byte, error) {
	var b encodedBodies
	for i, to := range []*[]byte{&b.params, &b.answer, &b.sent, &b.own} {
		var err error
		switch body := one.bodies[i]; {
		case one.omitted[i] > 0:
			*to, err = recording.Body{File: recording.Omitted, Size: one.omitted[i]}.MarshalJSON()
		case len(body) > 0:
			*to, err = r.encodeBody(body)
		}
		if err != nil {
			return nil, err
		}
	}
	return appendRecord(nil, &one.rec, one.answered, b), nil
}

func (r *Recorder) encodeBody(body []byte) ([]byte, error) {
	masked := repairJSON(r.o.Mask.Head(body, len(body)))
	if len(masked) <= recording.MaxInline {
		return masked, nil
	}
	stored, err := r.file.storeBody(masked)
	if err != nil {
		return nil, err
	}
	return stored.MarshalJSON()
}

// newFile starts a file with the header and the complete catalog.
func (r *Recorder) newFile(now time.Time) error {
	if err := r.file.create(now); err != nil {
		return err
	}
	name := r.file.name
	r.keep.current.Store(&name)
	head, err := r.catalog.appendHead(now, r.current)
	if err == nil {
		err = r.file.write(head)
	}
	if err != nil {
		return errors.Join(err, r.file.file.Close())
	}
	r.file.head = r.file.size
	r.keep.grow(r.file.takeWritten()) // before the keeper counts the file
	r.keep.signal()                   // to compress the previous one
	return nil
}

// finish writes the last line. cause is nil for an orderly end.
func (r *Recorder) finish(cause error) error {
	l := recording.Line{Type: recording.TypeEnd, Time: time.Now()}
	if cause != nil {
		l.Error = r.o.Mask.String(cause.Error())
	}
	line, err := appendLine(nil, &l)
	if err == nil {
		err = r.file.write(line)
	}
	return errors.Join(err, r.file.file.Close())
}

// fail stops the recording after an error of the disk.
func (r *Recorder) fail(err error) {
	r.stopped.Store(true)
	r.removeSink()
	_ = r.finish(err) // probably fails for the same reason
	r.keep.current.Store(nil)
	r.queue.take()
	r.o.Logger.Error("recording stopped", "folder", r.o.Folder, "err", err)
	err = fmt.Errorf("recording stopped: %w; free space, then type :record in the UI or restart Goblin", err)
	r.problem.Store(&err)
	if r.o.OnStop != nil {
		r.o.OnStop(err)
	}
}
