package registry

import (
	"errors"
	"fmt"
	"strings"

	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// skillFile is the end of each skill's URI (SEP-2640). The rest is the folder of all its
// files.
const skillFile = "/SKILL.md"

// maxFolders is the maximum number of parent folders searched for a file's skill.
const maxFolders = 64

// CheckSkill returns an error if the URIs in a skill's entry are invalid. It does not
// check digests, sizes and frontmatter.
func CheckSkill(entry []byte) error {
	_, err := skillLinks(entry)
	return err
}

// skillLinks returns the URIs in a skill's entry except its own, in the order of the
// text.
func skillLinks(entry []byte) (links []definitionLink, err error) {
	uri := rawjson.GetString(entry, "uri")
	folder, ok := strings.CutSuffix(uri, skillFile)
	switch {
	case !ok || folder == "":
		return nil, fmt.Errorf("uri does not end in %s", skillFile)
	case names.HasDotDot(uri):
		return nil, fmt.Errorf("uri leaves its folder")
	}
	for file := range rawjson.Elements(rawjson.Get(entry, "resources")) {
		value := rawjson.Get(file, "uri")
		own, ok := rawjson.String(value)
		if !ok || len(own) > MaxURI || !strings.HasPrefix(own, folder+"/") || names.HasDotDot(own) {
			return nil, fmt.Errorf("file %q is outside of its folder", clip(own))
		}
		links = append(links, definitionLink{value, own})
	}
	return links, nil
}

// ServesSkills sets whether a server serves skills, even if it lists none.
func (r *Registry) ServesSkills(server string, serves bool) {
	r.changeTable(server, func(t *table) { t.skills = serves })
}

// inSkill reports whether a URI is a listed skill, its folder, or below that folder.
func (t *table) inSkill(uri string) bool {
	run := t.runs[Skill]
	if run == nil || names.HasDotDot(uri) {
		return false
	}
	for folder, n := uri, 0; n < maxFolders; n++ {
		file := folder + skillFile
		if run.name(hashKey(file), file) != nil {
			return true
		}
		at := strings.LastIndexByte(folder, '/')
		if at <= 0 {
			return false
		}
		folder = folder[:at]
	}
	return false
}

// mayHave reports whether a URI may be, or be in, one of the server's skills. Unlisted
// skills are known only to the server.
func (t *table) mayHave(uri string) bool {
	return t.inSkill(uri) || t.skills && strings.HasPrefix(uri, names.SkillScheme) && !names.HasDotDot(uri)
}

// ResolveSkill finds the skill or folder that a client means by a URI. With a server in
// the URI, unlisted ones resolve too; otherwise exactly one server must have it. Errors
// as [Registry.ResolveTool].
func (s *Snapshot) ResolveSkill(uri string) (Target, error) {
	if len(uri) > MaxURI {
		return Target{}, nameTooLong(Skill, uri, MaxURI)
	}
	unknown := &NotFoundError{Kind: Skill, Name: uri, Reason: ReasonNotFound}
	t, _, rest, _, bare := s.located(uri)
	if t == nil {
		h := resolution{s: s, kind: Skill, name: uri}
		for _, t := range s.tables[1:] {
			if t.inSkill(uri) && !s.isUnapprovedSkill(t.name, uri) {
				h.add(s.skill(t, uri))
			}
		}
		if target, ok, err := h.result(); ok {
			return target, err
		}
		return s.directory(uri, unknown)
	}
	unknown.Owner = t.name
	own := rest
	switch decoded := names.UnescapeURI(rest); {
	case t.inSkill(rest):
	case decoded != rest && t.inSkill(decoded):
		own = decoded
	case bare && t.inSkill(uri):
		own = uri
	case !t.mayHave(rest):
		return s.directory(uri, unknown)
	}
	if t.rule == nil || s.isUnapprovedSkill(t.name, own) || !s.IsVisible(t.name, Skill, own) {
		return Target{}, unknown
	}
	return s.skill(t, own), nil
}

// directory finds a folder outside of skills, which is an ordinary resource.
func (s *Snapshot) directory(uri string, unknown *NotFoundError) (Target, error) {
	t, err := s.ResolveResource(uri)
	var several *AmbiguousError
	if err == nil && t.Local == nil || errors.As(err, &several) {
		return t, err
	}
	return Target{}, unknown
}

func (s *Snapshot) skill(t *table, uri string) Target {
	if e := t.runs[Skill].name(hashKey(uri), uri); e != nil {
		return s.target(e)
	}
	return Target{Server: t.name, Name: uri, Listed: names.NamespacedURI(t.name, uri)}
}

func (s *Snapshot) isUnapprovedSkill(server, uri string) bool {
	for _, p := range s.pinned.forServer(server) {
		if folder, ok := strings.CutSuffix(p.Name, skillFile); ok && p.Hidden && (uri == folder || strings.HasPrefix(uri, folder+"/")) {
			return true
		}
	}
	return false
}
