// Package recording defines and reads recordings of traffic.
//
// A recording is a file of JSON objects, one [Line] per line. It begins with a header. The
// handshake and the complete lists of each server follow, then the connected clients. So
// each file can be read on its own. Finished files are compressed (gzip, suffix
// ".jsonl.gz"); the current one ends in ".jsonl". Bodies over [MaxInline] are in files
// beside it, named by the SHA-256 of their content.
//
// All content is untrusted. Readers must ignore unknown types and members: later versions
// may add some without changing [Version].
package recording

import (
	"encoding/json"
	"time"

	"goblin/registry"
)

// Version is the version of the format. Readers refuse files of a higher version.
const Version = 1

// Limits of a recording, in bytes.
const (
	// MaxInline is the largest body in a line. A larger one goes to a file of its own.
	MaxInline = 64 << 10
	// maxLine is the longest line that readers accept. Only complete lists of servers come
	// near it.
	maxLine = 256 << 20
)

// Names of files and folders.
const (
	Suffix           = ".jsonl"    // of the current file
	CompressedSuffix = ".jsonl.gz" // of finished files
	// BodyFolder is the folder of bodies beside the files. The body with hash h is in
	// h[:2]/h, compressed by gzip.
	BodyFolder = "bodies"
)

// Type is the type of a [Line].
type Type string

// Values of [Type].
const (
	// TypeRecording is the header: Version, Goblin, Config, Bodies, Settings, Started.
	TypeRecording Type = "recording"
	// TypeServer is a server's handshake and lists: Server, Transport, Protocol,
	// Handshake, Lists. It follows the header, and a connection with another handshake.
	TypeServer Type = "server"
	// TypeState is a change of a server's state: Server, State, Error.
	TypeState Type = "state"
	// TypeList is a change of one server's list: Server, List, Added, Removed, Changes.
	TypeList Type = "list"
	// TypeClient is a new session: Session, Client, ClientVersion, Transport, Protocol,
	// Profile.
	TypeClient Type = "client"
	// TypeClosed is the end of a session: Session.
	TypeClosed Type = "closed"
	// TypeRequest is a request with its answer, from a client or a server.
	TypeRequest Type = "request"
	// TypeRunning is a request that has had no answer for a while. A TypeRequest with the
	// same Number follows, unless the recording ends before.
	TypeRunning Type = "running"
	// TypeNotification is a notification, in either direction.
	TypeNotification Type = "notification"
	// TypeDropped reports lines that were not recorded: Count, Error (the reason).
	TypeDropped Type = "dropped"
	// TypeEnd is the last line of a finished file. Error is the reason of a failure.
	TypeEnd Type = "end"
)

// NoConfig is the Config of recordings without a config file: of the demo and of single
// commands.
const NoConfig = "demo"

// Line is one line of a recording. Types use the members that their comment names.
// Durations are in milliseconds.
//
// A call of a stateless client may be interrupted by questions for the client. Then it has
// a TypeRequest per answer with the same Number and Time. The last one has the result.
type Line struct {
	Type Type      `json:"type"`
	Time time.Time `json:"time"` // start of a request

	// Header.
	Version  int             `json:"version,omitempty"`
	Goblin   string          `json:"goblin,omitempty"`   // version of Goblin
	Config   string          `json:"config,omitempty"`   // base name of the config, or [NoConfig]
	Bodies   bool            `json:"bodies,omitempty"`   // params and answers are recorded
	Settings json.RawMessage `json:"settings,omitempty"` // the config without commands, URLs and secrets
	// Started is the start of the recording process. Files with the same value share
	// their Numbers. Without it, each file has its own.
	Started time.Time `json:"started,omitzero"`

	// Origin and target.
	Session       string `json:"session,omitempty"`
	Client        string `json:"client,omitempty"`
	ClientVersion string `json:"clientVersion,omitempty"`
	Profile       string `json:"profile,omitempty"`
	Server        string `json:"server,omitempty"`
	Transport     string `json:"transport,omitempty"`
	Protocol      string `json:"protocol,omitempty"` // negotiated revision

	// Servers.
	State     string                       `json:"state,omitempty"`
	Handshake json.RawMessage              `json:"handshake,omitempty"` // {serverInfo, capabilities, instructions, protocolVersion}
	Lists     map[string][]json.RawMessage `json:"lists,omitempty"`     // tools, prompts, resources, templates, skills: the server's own definitions
	List      string                       `json:"list,omitempty"`      // a key of Lists
	Added     []json.RawMessage            `json:"added,omitempty"`     // new and changed definitions
	Removed   []string                     `json:"removed,omitempty"`   // the server's own names
	Changes   []Change                     `json:"changes,omitempty"`

	// Requests and notifications.
	Number    uint64  `json:"n,omitempty"`         // unique in the file, see below; 0 for notifications and requests of servers
	Parent    uint64  `json:"parent,omitempty"`    // Number of the request that caused it
	Direction string  `json:"direction,omitempty"` // "client" if it is sent to the client; "" if to the server
	Method    string  `json:"method,omitempty"`
	Name      string  `json:"name,omitempty"`     // tool, prompt or URI, as the client spelled it
	Original  string  `json:"original,omitempty"` // the server's own; omitted if equal
	Took      float64 `json:"took,omitempty"`
	UserWait  float64 `json:"userWait,omitempty"`  // part of Took
	StartWait float64 `json:"startWait,omitempty"` // for the server's start, part of Took
	QueueWait float64 `json:"queueWait,omitempty"` // for the server's limit, part of Took
	UserAsked bool    `json:"userAsked,omitempty"`
	Outcome   string  `json:"outcome,omitempty"` // a status of registry.TrafficRecord
	Code      int     `json:"code,omitempty"`    // of a JSON-RPC error
	Receivers int     `json:"receivers,omitempty"`
	// Answered reports whether the server answered. If not, Goblin made the answer.
	Answered     bool   `json:"answered,omitempty"`
	RequestSize  int    `json:"requestSize,omitempty"`
	ResponseSize int    `json:"responseSize,omitempty"`
	Wire         string `json:"wire,omitempty"` // ids and headers, see registry.WirePart
	// Rules are the steps of rules that stopped, changed or answered the request.
	Rules []registry.RuleEvent `json:"rules,omitempty"`

	// Bodies, as the client sees them. Secrets are masked.
	Params *Body `json:"params,omitempty"`
	Answer *Body `json:"answer,omitempty"` // the result, or with Code the error object
	// Sent and Own are the params and the answer at the server, if they differ in more
	// than the name.
	Sent *Body `json:"sent,omitempty"`
	Own  *Body `json:"own,omitempty"`

	Count int    `json:"count,omitempty"`
	Error string `json:"error,omitempty"`
}

// Change is the meaning of a change of one definition.
type Change struct {
	Name string `json:"name"` // the server's own
	// Op is "added", "removed" or "changed".
	Op string `json:"op"`
	// What describes a changed definition, such as "argument \"y\" is now required".
	What []string `json:"what,omitempty"`
}

// Body is JSON in a line, or the name of its file.
type Body struct {
	JSON json.RawMessage
	// File is the SHA-256 of a body over [MaxInline] in hex, or [Omitted]. Size is the
	// length of the body in bytes.
	File string
	Size int
}

// Omitted is the File of a body that was too large to record, over 16 MiB.
const Omitted = "omitted"

type bodyFile struct {
	File string `json:"$file"`
	Size int    `json:"size"`
}

// MarshalJSON implements [json.Marshaler]. A body in a file becomes an array with one
// object; params and answers are never arrays.
func (b Body) MarshalJSON() ([]byte, error) {
	if b.File != "" {
		return json.Marshal([]bodyFile{{b.File, b.Size}})
	}
	if len(b.JSON) == 0 {
		return []byte("null"), nil
	}
	return b.JSON, nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Body) UnmarshalJSON(text []byte) error { return b.set(text, false) }

func (b *Body) set(text []byte, owned bool) error {
	if len(text) > 0 && text[0] == '[' {
		var files []bodyFile
		if err := json.Unmarshal(text, &files); err == nil && len(files) == 1 && files[0].File != "" {
			*b = Body{File: files[0].File, Size: files[0].Size}
			return nil
		}
	}
	*b = Body{JSON: ownedValue(text, owned), Size: len(text)}
	return nil
}
