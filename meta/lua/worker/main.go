package worker

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// idleTimeout is the time that a process waits for a script.
	idleTimeout = 5 * time.Minute
	// exitGrace is the time for the virtual machine to stop and report the line.
	exitGrace = 100 * time.Millisecond
	maxProcs  = 2 // the script and the garbage collector
)

// Command is the only argument of a process of a script.
const Command = "script-worker"

// Each script needs a process. So it starts here, before the rest of the program, whose
// initialization takes longer than most scripts. Go does not guarantee this order, but
// only speed depends on it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(serve(os.Stdin, os.Stdout)) //nolint:forbidigo // this is the main of a process
	}
}

// serve runs the one script read from in and returns the exit code. The process must exit
// then.
func serve(in io.Reader, out io.Writer) int {
	runtime.GOMAXPROCS(maxProcs)
	debug.SetTraceback("none")
	closeInherited()
	unwanted := time.AfterFunc(idleTimeout, func() { os.Exit(0) })
	var start Start
	size, err := ReadHead(in, MaxHead, &start)
	if errors.Is(err, io.EOF) {
		return 0 // no script came
	}
	if err != nil {
		return 2
	}
	script, err := ReadBody(in, size)
	if err != nil {
		return 2
	}
	if !unwanted.Stop() {
		select {} // exiting; the script is not acknowledged
	}
	setLimits(&start)
	l := &connection{in: in, out: out, waiting: map[int]chan answer{}, closed: make(chan struct{})}
	if err := l.write(ScriptMessage{Ask: NotifyStarted}, nil); err != nil {
		return 1
	}
	r := newRun(start, l)
	go l.read(r.stop)
	go r.watchMemory()
	ended := make(chan *Error, 1)
	go func() { ended <- r.script(string(script)) }()
	var failed *Error
	select {
	case <-l.closed:
		return 1
	case failed = <-ended:
	case <-r.ended:
		select {
		case failed = <-ended:
		case <-time.After(exitGrace):
			failed = r.failure()
		}
	}
	if err := r.finish(failed); err != nil {
		return 1
	}
	return 0
}

func (r *run) finish(failed *Error) error {
	if failed == nil {
		return r.conn.write(ScriptMessage{End: &Outcome{Hint: r.prog.shadowHint()}}, nil)
	}
	message := TruncateError(failed.Message, r.start.Output)
	return r.conn.write(ScriptMessage{End: &Outcome{Failure: failed.Kind, Line: failed.Line}}, []byte(message))
}

type answer struct {
	GoblinMessage
	body []byte
}

type connection struct {
	in     io.Reader
	out    io.Writer
	closed chan struct{} // when Goblin closed the pipe

	writing sync.Mutex
	mu      sync.Mutex
	last    int // id
	waiting map[int]chan answer
}

func (l *connection) write(head ScriptMessage, body []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return WriteFrame(l.out, head, body)
}

func (l *connection) read(stop func(*Error)) {
	defer close(l.closed)
	for {
		var head GoblinMessage
		size, err := ReadHead(l.in, MaxHead, &head)
		if err != nil {
			return
		}
		body, err := ReadBody(l.in, size)
		if err != nil {
			return
		}
		if head.Stop != nil {
			stop(head.Stop)
			continue
		}
		l.mu.Lock()
		ch := l.waiting[head.ID]
		delete(l.waiting, head.ID)
		l.mu.Unlock()
		if ch != nil {
			ch <- answer{head, body} // never blocks: buffered
		}
	}
}

// ask sends a request and waits for its answer. ok is false if ended is closed first.
func (l *connection) ask(q ScriptMessage, body []byte, ended <-chan struct{}) (a answer, ok bool) {
	ch := make(chan answer, 1)
	l.mu.Lock()
	l.last++
	q.ID = l.last
	l.waiting[q.ID] = ch
	l.mu.Unlock()
	if err := l.write(q, body); err != nil {
		<-ended // the process will exit
		return answer{}, false
	}
	select {
	case a = <-ch:
		return a, true
	case <-ended:
		return answer{}, false
	}
}
