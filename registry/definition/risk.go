package definition

import (
	"fmt"
	"regexp"
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
func Risks(before, after []byte) []Risk {
	all := append(textRisks(before, after), hintRisks(before, after)...)
	if before == nil {
		return all
	}
	return append(all, argumentRisks(before, after)...)
}

// textRisks reports new sentences that address the model or have invisible characters.
func textRisks(before, after []byte) (all []Risk) {
	known := map[string]bool{}
	for _, text := range sentences(before) {
		known[text] = true
	}
	instructs, hidden := "", ""
	for _, text := range sentences(after) {
		if known[text] {
			continue
		}
		if instructs == "" && instruction().MatchString(text) {
			instructs = text
		}
		if hidden == "" && strings.ContainsFunc(text, isInvisible) {
			hidden = text
		}
	}
	if instructs != "" {
		all = append(all, Risk{RiskInstruction, "new text addresses the model: " + quoted(instructs)})
	}
	if hidden != "" {
		all = append(all, Risk{RiskHidden, "new text has invisible characters: " + quoted(hidden)})
	}
	return all
}

func hintRisks(before, after []byte) (all []Risk) {
	if before == nil {
		if string(rawjson.Path(after, "annotations", "destructiveHint")) == "true" {
			all = append(all, Risk{RiskDestructive, "may destroy something"})
		}
		return all
	}
	was, is := hintsOf(rawjson.Get(before, "annotations")), hintsOf(rawjson.Get(after, "annotations"))
	if is.destructive && !was.destructive {
		all = append(all, Risk{RiskDestructive, "may now destroy something"})
	}
	if was.readOnly && !is.readOnly {
		all = append(all, Risk{RiskWrites, "is no longer read-only"})
	}
	return all
}

func argumentRisks(before, after []byte) (all []Risk) {
	known, added := map[string]bool{}, map[bool][]string{}
	for _, f := range SchemaFields(before, "inputSchema") {
		known[f.Name] = true
	}
	for _, f := range SchemaFields(after, "inputSchema") {
		if !known[f.Name] {
			added[f.Required] = append(added[f.Required], f.Name)
		}
	}
	report := func(mark, text string, names []string) {
		if len(names) == 0 {
			return
		}
		text += " " + quoted(names[0])
		if len(names) > 1 {
			text += fmt.Sprintf(" and %d more", len(names)-1)
		}
		all = append(all, Risk{mark, text})
	}
	report(RiskRequired, "new required argument", added[true])
	report(RiskArgument, "new argument", added[false])
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
		`|\b(?:read|send|forward|include|copy|append|bcc|pass)\b.{0,60}(?:\b(?:me|conversation|history|passwords?|secrets?|tokens?|credentials?|keys?|id_rsa|id_ed25519)|\.ssh|\.env|\.aws)\b` +
		`|<\s*/?\s*(?:important|system|instructions?|secret)\b|\bimportant:`)
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

// sentenceEnd matches the end of a sentence, but no dot in a path or a name.
var sentenceEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?]+(?:\s|$)|[;\n\r]`) })

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
			for _, part := range sentenceEnd().Split(text, -1) {
				if part = strings.Join(strings.Fields(part), " "); part != "" {
					all = append(all, part)
				}
			}
		}
	}
	walk(value)
	return all
}
