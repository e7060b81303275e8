package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"goblin/registry/rawjson"
)

// Risk is a part of a tool's change that users should read before they approve it.
type Risk struct {
	Mark string `json:"mark"` // one word
	Text string `json:"text"` // one line; untrusted, without control characters
}

// Marks of a [Risk].
const (
	RiskInstruction = "instruction" // new text addresses the model
	RiskHidden      = "hidden"      // new text has invisible characters
	RiskDestructive = "destructive" // the tool may now destroy something
	RiskWrites      = "writes"      // the tool is no longer read-only
	RiskRequired    = "argument*"   // a new required argument
	RiskArgument    = "argument"    // a new optional argument
)

// Risks returns the risks of a tool's change, at most one per mark, the gravest first.
// before is nil for a new tool, whose arguments are not reported. Both must be valid.
func Risks(before, after []byte) (all []Risk) {
	add := func(mark, format string, args ...any) {
		if !slices.ContainsFunc(all, func(r Risk) bool { return r.Mark == mark }) {
			all = append(all, Risk{mark, fmt.Sprintf(format, args...)})
		}
	}
	known := map[string]bool{}
	for _, text := range sentences(before) {
		known[text] = true
	}
	hidden := ""
	for _, text := range sentences(after) {
		switch {
		case known[text]:
		case instruction().MatchString(text):
			add(RiskInstruction, "new text addresses the model: %s", Quoted(text))
		}
		if hidden == "" && !known[text] && strings.ContainsFunc(text, isInvisible) {
			hidden = text
		}
	}
	if hidden != "" {
		add(RiskHidden, "new text has invisible characters: %s", Quoted(hidden))
	}
	was, is := hintsOf(rawjson.Get(before, "annotations")), hintsOf(rawjson.Get(after, "annotations"))
	switch {
	case before == nil:
		if string(rawjson.Path(after, "annotations", "destructiveHint")) == "true" {
			add(RiskDestructive, "may destroy something")
		}
	case is.destructive && !was.destructive:
		add(RiskDestructive, "may now destroy something")
	}
	if before != nil && was.readOnly && !is.readOnly {
		add(RiskWrites, "is no longer read-only")
	}
	if before == nil {
		return all
	}
	added := map[bool][]string{}
	fields := map[string]bool{}
	for _, f := range SchemaFields(before, "inputSchema") {
		fields[f.Name] = true
	}
	for _, f := range SchemaFields(after, "inputSchema") {
		if !fields[f.Name] {
			added[f.Required] = append(added[f.Required], f.Name)
		}
	}
	for _, c := range []struct {
		mark, text string
		required   bool
	}{{RiskRequired, "new required argument", true}, {RiskArgument, "new argument", false}} {
		if names := added[c.required]; len(names) > 0 {
			text := c.text + " " + Quoted(names[0])
			if len(names) > 1 {
				text += fmt.Sprintf(" and %d more", len(names)-1)
			}
			add(c.mark, "%s", text)
		}
	}
	return all
}

type hints struct{ readOnly, destructive bool }

// hintsOf applies the defaults of the protocol.
func hintsOf(annotations []byte) hints {
	readOnly := string(rawjson.Get(annotations, "readOnlyHint")) == "true"
	return hints{readOnly, !readOnly && string(rawjson.Get(annotations, "destructiveHint")) != "false"}
}

// instruction matches a sentence that tells the model what to do, apart from the call.
var instruction = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:ignore|disregard|forget|override) (?:all|any|the|your|previous|prior|other|earlier|above)\b` +
		`|\b(?:do not|don't|never|without) (?:tell|mention|reveal|inform|show|ask|disclos|notify|warn|telling|asking|informing|mentioning)` +
		`|\balways\b|\byou (?:must|should|have to|need to|are)\b|\bsecretly\b|\bsystem prompt\b|\binstructions?\b` +
		`|\b(?:before|after|when|instead of) (?:using|calling|you)\b|\b(?:the|an?) (?:assistant|model|llm|ai|agent)\b` +
		`|\b(?:read|send|forward|include|copy|append|bcc)\b.{0,60}\b(?:me|conversation|history|password|secret|token|credential|key|\.ssh|\.env)\b` +
		`|<\s*/?\s*(?:important|system|instructions?|secret)\b`)
})

// isInvisible reports whether a character may hide text from users. It permits joiners
// of emojis.
func isInvisible(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r', r == 0x200d:
		return false
	case r >= 0xe0100 && r <= 0xe01ef, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// maxSentences is the maximum number of compared sentences of a definition.
const maxSentences = 5_000

// sentences returns the sentences of all texts that models read. Spaces and line breaks
// do not matter.
func sentences(value []byte) (all []string) {
	var walk func(value []byte)
	walk = func(value []byte) {
		switch {
		case len(all) >= maxSentences:
		case rawjson.IsObject(value):
			for _, v := range rawjson.Members(value) {
				walk(v)
			}
		case rawjson.IsArray(value):
			for v := range rawjson.Elements(value) {
				walk(v)
			}
		case rawjson.IsString(value):
			text, _ := rawjson.String(value)
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".!?;\n\r", r) }) {
				if part = strings.Join(strings.Fields(part), " "); part != "" {
					all = append(all, part)
				}
			}
		}
	}
	walk(value)
	return all
}
