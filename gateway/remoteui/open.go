package remoteui

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Programs that Open starts.
const (
	Pager  = "pager"
	Editor = "editor"
	File   = "file" // the editor, of a file that is there
)

// browserOrder is the kind of order that starts a browser, which needs no content and no
// terminal.
const browserOrder = "browser"

// maxPage bounds the URL of a page, in bytes.
const maxPage = 16 << 10

// Browse opens a page in the browser of the relay's user, and does not wait for that to
// end. The error says why none was started.
func (s *Conn) Browse(ctx context.Context, page string) error {
	if len(page) > maxPage {
		return fmt.Errorf("the URL has %d bytes, the limit is %d", len(page), maxPage)
	}
	_, err := s.order(ctx, frameExec, order{Kind: browserOrder, Name: page}, nil)
	return err
}

// Open shows content in the relay's pager or editor and waits until that has
// ended. Changes made there are thrown away. name is what the content is
// called; programs choose by its ending how to show it. Content is at most
// 128 MiB. When ctx ends Open returns, and the program keeps running.
//
// File opens a file of the relay's machine for editing and ignores content. Its name is an
// absolute path, with an optional line after a colon.
func (s *Conn) Open(ctx context.Context, program, name string, content []byte) error {
	if program != Pager && program != Editor && program != File {
		return fmt.Errorf("open %q: no program %q", name, program)
	}
	if _, err := s.order(ctx, frameExec, order{Kind: program, Name: name}, content); err != nil {
		return fmt.Errorf("open %q in the %s: %w", name, program, err)
	}
	return nil
}

// Save writes content into a new file where the relay is and tells the file's
// absolute path. A relative path starts at the relay's working directory, ~ is
// its user's home. It never overwrites. Content is at most 128 MiB.
func (s *Conn) Save(ctx context.Context, path string, content []byte) (where string, err error) {
	a, err := s.order(ctx, frameSave, order{Name: path}, content)
	if err != nil {
		return "", fmt.Errorf("save %q: %w", path, err)
	}
	return a.Path, nil
}

// order sends content in pieces, so that output gets through between them,
// then the order, and waits for the answer; what that says went wrong is an error,
// too. One order at a time.
func (s *Conn) order(ctx context.Context, kind byte, o order, content []byte) (orderResult, error) {
	if len(content) > maxContent {
		return orderResult{}, fmt.Errorf("%d bytes are too many, the limit is %d", len(content), maxContent)
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
