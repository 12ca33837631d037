package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

//go:embed skill.md
var skillWords string

const (
	maxSkillFile = 1 << 20
	// skillListBytes bounds the list of skills in the tool's description,
	// which travels with every request; skillLineBytes one entry of it.
	skillListBytes = 2000
	skillLineBytes = 200
)

// A Skill is instructions for a kind of task, loaded when they are needed.
type Skill struct {
	Name        string // the folder's name
	Description string // when to use it, one line; may be empty
	Body        string // the instructions, without frontmatter
	// Dir is the folder that holds SKILL.md and whatever belongs to it, an
	// absolute path of the host; empty for a skill that has none.
	Dir string
}

// LoadSkills reads skills/<name>/SKILL.md below each of the directories, which
// are the .synapse folders of the workspace, then of the user. Of two skills
// of one name the first counts. A SKILL.md may begin with YAML frontmatter;
// its description is used, else the first line of text is. Links are followed
// within a directory, not out of it.
//
// The skills come sorted by name. An error stands for one skill that could not
// be read and names its file; the rest is loaded. A directory that doesn't
// exist holds none.
func LoadSkills(dirs ...string) ([]Skill, []error) {
	var skills []Skill
	var errs []error
	for _, dir := range dirs {
		found, problems := loadSkillDir(dir)
		errs = append(errs, problems...)
		for _, s := range found {
			if _, ok := FindSkill(skills, s.Name); !ok {
				skills = append(skills, s)
			}
		}
	}
	slices.SortFunc(skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return skills, errs
}

// FindSkill returns the skill of that name; case, blanks, "-" and "_" don't
// matter when no name is the same exactly.
func FindSkill(skills []Skill, name string) (Skill, bool) {
	for _, s := range skills {
		if s.Name == name {
			return s, true
		}
	}
	plain := plainName(name)
	for _, s := range skills {
		if plain != "" && plainName(s.Name) == plain {
			return s, true
		}
	}
	return Skill{}, false
}

var plainNames = strings.NewReplacer(" ", "", "-", "", "_", "")

func plainName(s string) string { return plainNames.Replace(strings.ToLower(s)) }

func loadSkillDir(dir string) (skills []Skill, errs []error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, []error{fmt.Errorf("skills in %s: %w", dir, err)}
	}
	root, err := os.OpenRoot(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("skills in %s: %w", dir, plainError(err))}
	}
	defer root.Close()
	top := place{root: root, rel: "skills", name: "skills"}
	entries, err := top.list()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("skills in %s: %w", dir, err)}
	}
	for _, e := range entries {
		if !e.isDir() && e.mode&fs.ModeSymlink == 0 {
			continue
		}
		file := top.at(path.Join("skills", e.name, "SKILL.md"))
		s, err := readSkill(file, e.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a folder that is no skill
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("skill in %s: %w", dir, err))
			continue
		}
		s.Dir = filepath.Join(abs, "skills", e.name)
		skills = append(skills, s)
	}
	return skills, errs
}

func readSkill(p place, name string) (Skill, error) {
	f, info, err := p.open()
	if err != nil {
		return Skill{}, err
	}
	defer f.Close()
	if info.IsDir() {
		return Skill{}, fmt.Errorf("%s is a directory", p.show())
	}
	if info.Size() > maxSkillFile {
		return Skill{}, fmt.Errorf("%s has %s; at most %s are read", p.show(), bytesText(info.Size()), bytesText(maxSkillFile))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSkillFile))
	if err != nil {
		return Skill{}, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	t, err := decode(data)
	if err != nil {
		return Skill{}, fmt.Errorf("%s is %w", p.show(), err)
	}
	front, body := splitFrontmatter(toLF(t.s))
	s := Skill{Name: name, Description: frontmatterValue(front, "description"), Body: strings.TrimSpace(body)}
	if s.Body == "" {
		return Skill{}, fmt.Errorf("%s holds no instructions", p.show())
	}
	if s.Description == "" {
		s.Description = firstSentence(s.Body)
	}
	return s, nil
}

// splitFrontmatter parts the block between two lines of "---" at the start
// from the rest. Without one, everything is body.
func splitFrontmatter(s string) (front, body string) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\n"), "---")
	if !ok {
		return "", s
	}
	first, rest, ok := strings.Cut(rest, "\n")
	if !ok || strings.TrimSpace(first) != "" {
		return "", s
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:at], strings.TrimPrefix(rest[at+len(line):], "\n")
		}
		at += len(line) + 1
	}
	return "", s
}

// frontmatterValue returns a text of the frontmatter as one line. What is no
// YAML is read line by line: an unquoted ": " in a description is common.
func frontmatterValue(front, key string) string {
	var m map[string]any
	if err := yaml.NewDecoder(bytes.NewReader([]byte(front))).Decode(&m); err == nil {
		if s, ok := m[key].(string); ok {
			return strings.Join(strings.Fields(s), " ")
		}
		return ""
	}
	for line := range strings.SplitSeq(front, "\n") {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Trim(strings.Join(strings.Fields(v), " "), `"'`)
		}
	}
	return ""
}

// firstSentence returns the first line of Markdown that is no heading.
func firstSentence(body string) string {
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return shortened(line, skillLineBytes)
		}
	}
	return ""
}

func shortened(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.TrimSpace(cut(s, max-len("…"))) + "…"
}

type skillArgs struct {
	Name string `json:"name"`
}

func (w *Workspace) skill() synapse.Tool {
	words := strings.TrimSpace(skillWords)
	if len(w.opt.Skills) > 0 {
		words += "\n" + listSkills(w.opt.Skills)
	} else {
		what, _, _ := strings.Cut(words, ". ")
		words = what + ". None is installed."
	}
	t := must(New("skill", words, w.runSkill))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectText, Args: []string{"name"}}
	return t
}

// listSkills writes the skills for the tool's description: with descriptions
// while they fit, then by name, never left out.
func listSkills(skills []Skill) string {
	var out strings.Builder
	names := 0
	for _, s := range skills {
		names += len(s.Name) + len("- \n")
	}
	room := skillListBytes - names
	for _, s := range skills {
		out.WriteString("- " + s.Name)
		if d := shortened(s.Description, skillLineBytes); d != "" && len(d)+2 <= room {
			out.WriteString(": " + d)
			room -= len(d) + 2
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func (w *Workspace) runSkill(_ context.Context, in *synapse.Invocation, args skillArgs) (*synapse.ToolResult, error) {
	s, ok := FindSkill(w.opt.Skills, args.Name)
	if !ok {
		var names []string
		for _, s := range w.opt.Skills {
			names = append(names, s.Name)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("no skill %q; none is installed", args.Name)
		}
		return nil, fmt.Errorf("no skill %q; there are %s", args.Name, strings.Join(names, ", "))
	}
	if s.Name != args.Name && !permits(in, s.Name) {
		return nil, fmt.Errorf("permission denied: %s is the skill %s; do not retry", args.Name, s.Name)
	}
	text := s.Body
	if s.Dir != "" {
		at := skillPlace(s.Name)
		if rel, inside := w.hostPath(s.Dir); inside {
			at = rel
		}
		text = fmt.Sprintf("[Skill %s. Its files are in %s; paths in it start there.]\n\n%s", s.Name, at, s.Body)
	}
	return synapse.TextResult(text), nil
}

// skillPlace is where a skill from outside the workspace can be read.
func skillPlace(name string) string { return ".synapse/skills/" + name }
