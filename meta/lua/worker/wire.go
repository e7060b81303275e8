package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Limits of a script's requests, in bytes.
const (
	MaxHead = 1 << 20
	MaxName = 4 << 10 // of names, queries and MIME types
	MaxURI  = 64 << 10
)

// Start is the first head sent to a process. The body is the script.
type Start struct {
	Servers    []string // config names, in order
	Output     int64    // maximum bytes of an error's text
	Memory     int64    // bytes
	FreeMemory int64    // bytes that it may use without asking
	CPU        int64    // seconds of CPU time
}

// Values of ScriptMessage.Ask.
const (
	AskCall   = "call"   // a tool by its listed name; body: arguments
	AskRead   = "read"   // a resource by its URI
	AskPrompt = "prompt" // a prompt by its name; body: arguments, if any
	AskSearch = "search" // cards, best first
	AskTool   = "tool"   // a tool by its own name or identifier: a Tool
	AskList   = "list"   // cards of the servers' lists
	AskMemory = "memory" // more than Start.FreeMemory; answered when allowed

	NotifyStarted = "begun" // script received; notifications are not answered
	NotifyPrint   = "print"
	NotifyResult  = "result" // body: JSON; the last one counts
)

// ScriptMessage is the head of a frame from a script: a request, a notification or, with
// End, the last message.
type ScriptMessage struct {
	ID     int      `json:",omitempty"` // of the request
	Ask    string   `json:",omitempty"`
	Server string   `json:",omitempty"` // config name
	Tool   string   `json:",omitempty"` // the server's own name
	Name   string   `json:",omitempty"` // name, URI or query
	Kind   string   `json:",omitempty"`
	MIME   string   `json:",omitempty"`
	Limit  int      `json:",omitempty"`
	Offset int      `json:",omitempty"`
	End    *Outcome `json:",omitempty"`
}

// Outcome is the outcome of a script. The body is the error message.
type Outcome struct {
	Failure Kind   `json:",omitempty"` // "" on success
	Line    int    `json:",omitempty"`
	Hint    string `json:",omitempty"` // why there may be no result
}

// GoblinMessage is the head of a frame to a script: an answer, or a stop message.
type GoblinMessage struct {
	ID int `json:",omitempty"`
	// Error is the reason for a missing answer. If Code is set, the body has the data of
	// the server's error.
	Error string `json:",omitempty"`
	Code  *int   `json:",omitempty"`
	Stop  *Error `json:",omitempty"`
}

// Tool is a tool of a server.
type Tool struct {
	Name   string // the server's own
	Listed string
}

// Kind is the kind of a script's error.
type Kind string

// Values of [Kind].
const (
	Syntax    Kind = "syntax"
	Runtime   Kind = "runtime"
	Timeout   Kind = "timeout"
	Memory    Kind = "memory"
	Calls     Kind = "calls"
	Output    Kind = "output"
	Cancelled Kind = "cancelled"
	Crash     Kind = "crash" // the process exited, or did not start
)

// MaxMessage is the minimum output reserved for an error's text, in bytes.
const MaxMessage = 256

// TruncateError cuts an error's text to the remaining output of left bytes.
func TruncateError(text string, left int64) string {
	most := int(max(left, MaxMessage))
	if len(text) <= most {
		return text
	}
	const rest = "… (lua.output)"
	return text[:most-len(rest)] + rest
}

// chunkName is the name of scripts in errors.
const chunkName = "script"

// Error is the error of a script. For limits, Message contains the config key.
type Error struct {
	Kind    Kind
	Line    int // 0 if unknown
	Message string
	Cause   error `json:"-"` // of the context, for Cancelled
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", chunkName, e.Line, e.Message)
	}
	return chunkName + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// MemoryError returns the error for a script that exceeds its memory.
func MemoryError(limit int64) *Error {
	return &Error{Kind: Memory, Message: fmt.Sprintf("the script needs more than %s of memory (lua.memory)", FormatSize(limit))}
}

// FormatSize formats a number of bytes.
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

const lengths = 4 + 8 // bytes of both lengths

// WriteFrame writes a frame, the message between Goblin and a script's process on the
// process's stdin and stdout. It consists of a JSON head and a raw body, both prefixed by
// their lengths. WriteFrame is not safe for concurrent use.
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

// ReadHead reads the head of a frame, at most most bytes, and returns the length of the
// following body. Callers must check the length before they read the body. It returns
// io.EOF between frames.
func ReadHead(r io.Reader, most int, head any) (body int64, err error) {
	var at [lengths]byte
	if _, err := io.ReadFull(r, at[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(at[:])
	if int64(n) > int64(most) {
		return 0, fmt.Errorf("head of %d bytes exceeds the limit of %d", n, most)
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
