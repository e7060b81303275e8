package remoteui

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Programs for Open.
const (
	Pager  = "pager"
	Editor = "editor"
	File   = "file" // the editor, for an existing file
)

const browserOrder = "browser"

// maxPage is the maximum length of a URL, in bytes.
const maxPage = 16 << 10

// Browse opens a page in the browser of the relay's user without waiting for it. It
// returns an error if no browser could be started.
func (s *Conn) Browse(ctx context.Context, page string) error {
	if len(page) > maxPage {
		return fmt.Errorf("the URL has %d bytes, the limit is %d", len(page), maxPage)
	}
	_, err := s.order(ctx, frameExec, order{Kind: browserOrder, Name: page}, nil)
	return err
}

// Open shows content in the relay's pager or editor and waits until the program exits.
// Changes are discarded. Programs choose the syntax by the suffix of name. Content is at
// most 128 MiB. If ctx is done, Open returns and the program keeps running.
//
// File edits a file on the relay's machine and ignores content. Its name is an absolute
// path, with an optional line after a colon.
func (s *Conn) Open(ctx context.Context, program, name string, content []byte) error {
	if program != Pager && program != Editor && program != File {
		return fmt.Errorf("open %q: unknown program %q", name, program)
	}
	if _, err := s.order(ctx, frameExec, order{Kind: program, Name: name}, content); err != nil {
		return fmt.Errorf("open %q in the %s: %w", name, program, err)
	}
	return nil
}

// Save writes content to a new file on the relay's machine and returns its absolute path.
// A relative path is relative to the relay's working directory, ~ is its user's home. It
// never overwrites files. Content is at most 128 MiB.
func (s *Conn) Save(ctx context.Context, path string, content []byte) (where string, err error) {
	a, err := s.order(ctx, frameSave, order{Name: path}, content)
	if err != nil {
		return "", fmt.Errorf("save %q: %w", path, err)
	}
	return a.Path, nil
}

// order sends content in pieces, to let output through, then the order, and waits for the
// result. Only one order is processed at a time.
func (s *Conn) order(ctx context.Context, kind byte, o order, content []byte) (orderResult, error) {
	if len(content) > maxContent {
		return orderResult{}, fmt.Errorf("content has %d bytes, the limit is %d", len(content), maxContent)
	}
	select {
	case s.orders <- struct{}{}:
		defer func() { <-s.orders }()
	case <-s.gone:
		return orderResult{}, ErrDisconnected
	case <-ctx.Done():
		return orderResult{}, ctx.Err()
	}
	s.lastID++
	o.ID = s.lastID
	var piece []byte
	for len(content) > 0 {
		if err := ctx.Err(); err != nil {
			return orderResult{}, err
		}
		n := min(len(content), contentPiece)
		piece = binary.BigEndian.AppendUint64(piece[:0], o.ID)
		if err := s.send(frameContent, append(piece, content[:n]...)); err != nil {
			return orderResult{}, err
		}
		content = content[n:]
	}
	if err := s.send(kind, jsonFrame(0, o)[frameHead:]); err != nil {
		return orderResult{}, err
	}
	for {
		select {
		case a := <-s.answers:
			if a.ID == o.ID && a.Error != "" {
				return orderResult{}, errors.New(a.Error)
			}
			if a.ID == o.ID {
				return a, nil
			}
		case <-s.gone:
			return orderResult{}, ErrDisconnected
		case <-ctx.Done():
			return orderResult{}, ctx.Err()
		}
	}
}
