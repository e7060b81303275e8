package tui

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"goblin/registry/savedcall"
)

// fakeSaved keeps saved calls in memory and runs them by the answers of a test.
type fakeSaved struct {
	files   map[string]string
	answers map[string]string
	missing string
	request func(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
}

const savedFolder = "/etc/goblin/saved"

func (s *fakeSaved) SavedCalls() (*savedcall.Folder, error) {
	folder := &savedcall.Folder{Path: savedFolder, Problem: s.missing}
	for _, name := range slices.SortedFunc(maps.Keys(s.files), func(a, b string) int {
		return strings.Compare(path.Dir(a)+"\x00"+a, path.Dir(b)+"\x00"+b)
	}) {
		f := savedcall.File{Name: name}
		var err error
		if f.Call, err = savedcall.Parse(savedFolder+"/"+name, []byte(s.files[name])); err != nil {
			f.Mistakes = err.Error()
		}
		_, f.HasAnswer = s.answers[name]
		folder.Files = append(folder.Files, f)
	}
	return folder, nil
}

func (s *fakeSaved) StoredAnswer(name string) ([]byte, error) { return []byte(s.answers[name]), nil }

func (s *fakeSaved) SaveCall(name string, c *savedcall.Call, overwrite bool) (string, error) {
	if _, taken := s.files[name]; taken && !overwrite {
		return "", fs.ErrExist
	}
	s.files[name] = string(c.Format())
	return savedFolder + "/" + name, nil
}

func (s *fakeSaved) StoreAnswer(name string, answer []byte) error {
	s.answers[name] = string(answer)
	return nil
}

func (s *fakeSaved) MoveSavedCall(from, to string, keep bool) error {
	if _, taken := s.files[to]; taken {
		return fs.ErrExist
	}
	s.files[to] = s.files[from]
	if !keep {
		delete(s.files, from)
	}
	return nil
}

func (s *fakeSaved) DeleteSavedCall(name string) error {
	if _, ok := s.files[name]; !ok {
		return os.ErrNotExist
	}
	delete(s.files, name)
	return nil
}

func (s *fakeSaved) RunSaved(ctx context.Context, names []string, set map[string]string, captures map[string]json.RawMessage, done func(savedcall.Result)) error {
	captures = maps.Clone(captures)
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		call, err := savedcall.Parse(savedFolder+"/"+name, []byte(s.files[name]))
		if err != nil {
			return err
		}
		result := savedcall.Result{Call: call, State: savedcall.Failed}
		r, err := call.Resolve(savedcall.Variables{Captures: captures, Env: func(name string) (string, bool) { v, ok := set[name]; return v, ok }})
		if err != nil {
			result.Problem = err.Error()
			done(result)
			continue
		}
		answer := savedcall.Answer{Time: 12 * time.Millisecond}
		if stored, ok := s.answers[name]; ok {
			answer.Stored = []byte(stored)
		}
		if answer.Result, err = s.request(ctx, r.Method, r.Params, nil); err != nil {
			return err
		}
		result.Answer, result.Outcomes = answer, r.Evaluate(answer)
		result.Captured, _ = r.Captures(answer)
		maps.Copy(captures, result.Captured)
		if len(result.Failures()) == 0 {
			result.State = savedcall.Passed
		}
		done(result)
	}
	return nil
}
