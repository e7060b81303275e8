// Wire is what Goblin and the process of a script say to each other: the
// frames on its stdin and stdout, how to read and write them, and how scripts write
// names. goblin/meta/lua is the one end, goblin/meta/lua/worker the other.
//
// A frame is a head in JSON and a body of bytes as they are, each with its length
// in front. Who reads says how long both may be, and learns the body's length
// before it has to hold it.

package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Bounds of what a script asks for, in bytes.
const (
	MaxHead = 1 << 20
	MaxName = 4 << 10 // of tools, prompts and servers, of queries and MIME types
	MaxURI  = 64 << 10
)

// Start is the first head that a process gets; the script is the body.
type Start struct {
	Servers    []string // config names, in order
	Output     int64    // bytes of an error's text, at most
	Memory     int64    // bytes
	FreeMemory int64    // bytes that it may hold without asking
	CPU        int64    // seconds of processor time
}

// What a script asks for.
const (
	AskCall   = "call"   // a tool by its listed name; the body is its arguments
	AskRead   = "read"   // a resource by its URI
	AskPrompt = "prompt" // a prompt by its name; the body is its arguments, if any
	AskSearch = "search" // cards, best first
	AskTool   = "tool"   // a tool by its own name or identifier: a Tool
	AskList   = "list"   // cards of what the servers list
	AskMemory = "memory" // to hold more than Start.FreeMemory; answered when it may

	NotifyStarted = "begun" // it has the script; not answered, like all that is told
	NotifyPrint   = "print"
	NotifyResult  = "result" // the body is JSON; the last one counts
)

// ScriptMessage is the head of a frame of a script: a question, what it gives or, with
// End, its last.
type ScriptMessage struct {
	ID     int      `json:",omitempty"` // of the question
	Ask    string   `json:",omitempty"`
	Server string   `json:",omitempty"` // config name
	Tool   string   `json:",omitempty"` // the server's own name of the tool that is called
	Name   string   `json:",omitempty"` // name, URI or query
	Kind   string   `json:",omitempty"`
	MIME   string   `json:",omitempty"`
	Limit  int      `json:",omitempty"`
	Offset int      `json:",omitempty"`
	End    *Outcome `json:",omitempty"`
}

// Outcome is how a script ended. The body is the message of its failure.
type Outcome struct {
	Failure Kind   `json:",omitempty"` // "" for none
	Line    int    `json:",omitempty"`
	Hint    string `json:",omitempty"` // why there may be no result
}

// GoblinMessage is the head of a frame for a script: the answer to a question, or the
// order to end.
type GoblinMessage struct {
	ID int `json:",omitempty"`
	// Error says why there is no answer. With Code the body is the data that a
	// server's error has.
	Error string `json:",omitempty"`
	Code  *int   `json:",omitempty"`
	// Stop ends the script for this reason.
	Stop *Error `json:",omitempty"`
}

// Tool is a tool of a server.
type Tool struct {
	Name   string // the server's own
	Listed string
}

// Kind says why a script failed.
type Kind string

// The kinds of [Error].
const (
	Syntax    Kind = "syntax"
	Runtime   Kind = "runtime"
	Timeout   Kind = "timeout"
	Memory    Kind = "memory"
	Calls     Kind = "calls"
	Output    Kind = "output"
	Cancelled Kind = "cancelled"
	Crash     Kind = "crash" // its process ended, or could not be started
)

// MaxMessage is how much of an error's text there is always room for, in bytes.
const MaxMessage = 256

// TruncateError is the beginning of an error's text for which so many bytes of output are left.
func TruncateError(text string, left int64) string {
	most := int(max(left, MaxMessage))
	if len(text) <= most {
		return text
	}
	const rest = "… (lua.output)"
	return text[:most-len(rest)] + rest
}

// ChunkName names a script in errors.
const ChunkName = "script"

// Error is a script that failed. Of the limits, Message names the config key.
type Error struct {
	Kind    Kind
	Line    int // 0 when unknown
	Message string
	Cause   error `json:"-"` // the context's, for Cancelled; else nil
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", ChunkName, e.Line, e.Message)
	}
	return ChunkName + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// MemoryError is a script that needs more memory than it may have.
func MemoryError(limit int64) *Error {
	return &Error{Kind: Memory, Message: fmt.Sprintf("the script needs more than %s of memory (lua.memory)", FormatSize(limit))}
}

// FormatSize is a number of bytes for humans.
func FormatSize(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

const lengths = 4 + 8 // bytes in front of a frame: the head's length and the body's

// WriteFrame writes a frame. Frames must not be written at once.
func WriteFrame(w io.Writer, head any, body []byte) error {
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	frame := make([]byte, lengths, lengths+len(text)+min(len(body), 64<<10))
	binary.BigEndian.PutUint32(frame, uint32(len(text)))
	binary.BigEndian.PutUint64(frame[4:], uint64(len(body)))
	frame = append(frame, text...)
	if len(frame)+len(body) <= cap(frame) {
		frame, body = append(frame, body...), nil
	}
	if _, err := w.Write(frame); err != nil {
		return err
	}
	if len(body) > 0 {
		_, err = w.Write(body)
	}
	return err
}

// ReadHead reads the head of a frame, which is at most most bytes long, and says
// how long the body is that comes next. The error is io.EOF between frames.
func ReadHead(r io.Reader, most int, head any) (body int64, err error) {
	var at [lengths]byte
	if _, err := io.ReadFull(r, at[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(at[:])
	if int64(n) > int64(most) {
		return 0, fmt.Errorf("a head of %d bytes, the longest has %d", n, most)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, fmt.Errorf("read a head: %w", err)
	}
	if err := json.Unmarshal(text, head); err != nil {
		return 0, fmt.Errorf("read a head: %w", err)
	}
	return int64(binary.BigEndian.Uint64(at[4:])), nil
}

// ReadBody reads a body of n bytes.
func ReadBody(r io.Reader, n int64) ([]byte, error) {
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read a body: %w", err)
	}
	return body, nil
}
