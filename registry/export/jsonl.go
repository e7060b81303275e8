package export

import (
	"encoding/json"
	"io"

	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// writeJSONL writes one recording with one header. Bodies of files are inlined. Unanswered
// requests come last.
func writeJSONL(k *walker, w io.Writer) error {
	put := func(l *recording.Line) error {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, termtext.JSON(string(text))+"\n")
		return err
	}
	var end *recording.Line
	k.onOther = func(l *recording.Line) error {
		switch l.Type {
		case recording.TypeEnd:
			end = l
			return nil
		case recording.TypeRecording:
			if l != k.header {
				return nil // of a further file
			}
			l.Bodies = l.Bodies && !k.options.NoBodies
		}
		return put(l)
	}
	err := k.each(func(e *exchange) error {
		l := *e.Line
		l.Params, l.Answer = inline(l.Params, e.params, e.paramsCut), inline(l.Answer, e.answer, e.answerCut)
		l.Sent, l.Own = k.inlined(l.Sent), k.inlined(l.Own)
		return put(&l)
	})
	if err == nil && end != nil {
		err = put(end)
	}
	return err
}

func (k *walker) inlined(b *recording.Body) *recording.Body {
	text, cut := k.body(b)
	return inline(b, text, cut)
}

func inline(b *recording.Body, text []byte, cut bool) *recording.Body {
	if b == nil || text == nil || cut {
		return nil
	}
	return &recording.Body{JSON: text}
}
