package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ErrChanged says that a settings file is not what it was when it was read.
// Reload, look again, and save again.
var ErrChanged = errors.New("the file has changed since it was read")

// A Store holds the settings of one workspace and saves single values to the
// user's or the project's file. It may be used from several goroutines.
type Store struct {
	src Sources

	mu       sync.Mutex
	settings *Settings
	files    map[string][]byte // as they were read
}

// NewStore loads the settings.
func NewStore(src Sources) (*Store, []Warning, error) {
	s := &Store{src: src}
	warnings, err := s.Reload()
	if err != nil {
		return nil, warnings, err
	}
	return s, warnings, nil
}

// Settings returns the settings as they were last loaded or saved.
func (s *Store) Settings() *Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// Reload reads all layers again. On an error the settings stay as they were.
func (s *Store) Reload() ([]Warning, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &loader{src: s.src, read: readFile}
	settings, warnings, err := l.load()
	if err != nil {
		return warnings, err
	}
	s.settings, s.files = settings, l.files
	return warnings, nil
}

// Saved says what a save came to.
type Saved struct {
	Layer   Layer
	Path    string
	Key     string
	Removed bool // the key was taken out of the file
	// InForce says whether the layer's value is the one that counts now.
	InForce bool
	// HiddenBy says where the value that counts comes from, when that is not
	// what was saved.
	HiddenBy []Origin
	// Warnings are those of the saved file.
	Warnings []Warning
}

// String says it in one sentence.
func (s Saved) String() string {
	var b strings.Builder
	where := Origin{Layer: s.Layer, Path: s.Path}
	if s.Removed {
		fmt.Fprintf(&b, "removed %s from %s", s.Key, where)
	} else {
		fmt.Fprintf(&b, "saved %s to %s", s.Key, where)
	}
	for i, o := range s.HiddenBy {
		switch {
		case i > 0:
			b.WriteString(" and ")
		case s.Removed:
			b.WriteString("; it is still set by ")
		default:
			b.WriteString("; it is hidden by ")
		}
		b.WriteString(o.String())
	}
	if !s.InForce && !s.Removed && len(s.HiddenBy) == 0 {
		b.WriteString("; it has no effect")
		for _, w := range s.Warnings {
			if w.Code == WarnNoEffect && w.Key == s.Key || w.Code == WarnUntrusted && strings.Contains(w.Message, s.Key) {
				b.WriteString(": " + w.Message)
			}
		}
	}
	return b.String()
}

// Set saves a value to the file of [LayerUser] or [LayerProject] and brings
// [Store.Settings] up to date. key is a name of [Keys], or for keys that hold
// named entries one entry ("subagent_model_overrides.reviewer"). nil takes the
// key out of the file, and so does "inherit" for a model or an effort.
//
// Nothing is written when the value is not what the key takes ([*Error]), when
// the file is damaged, or when it changed since it was read ([ErrChanged]).
func (s *Store) Set(layer Layer, key string, value any) (Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved, err := s.set(layer, key, value)
	if err != nil {
		return Saved{}, fmt.Errorf("save %s: %w", key, err)
	}
	return saved, nil
}

func (s *Store) set(layer Layer, name string, value any) (Saved, error) {
	path, err := s.file(&layer)
	if err != nil {
		return Saved{}, err
	}
	k, names, err := locate(name)
	if err != nil {
		return Saved{}, err
	}
	text, err := encodeValue(k, value)
	if err != nil {
		return Saved{}, err
	}
	saved := Saved{Layer: layer, Path: path, Key: name, Removed: text == nil}

	if _, exists := s.files[path]; !exists && text == nil {
		saved.judge(s.settings, k, text)
		return saved, nil
	}
	dirMode, fileMode := fs.FileMode(0o700), fs.FileMode(0o600)
	if layer == LayerProject {
		dirMode, fileMode = 0o755, 0o644
	}
	var after *loader
	err = replaceFile(path, dirMode, fileMode, func(before []byte, exists bool) ([]byte, error) {
		read, was := s.files[path]
		if exists != was || !bytes.Equal(before, read) {
			return nil, fmt.Errorf("%s: %w", path, ErrChanged)
		}
		if !exists {
			before = []byte("{}\n")
		}
		doc, bad := parseDocument(path, before)
		if bad != nil {
			return nil, bad
		}
		data := removeMember(doc, names)
		if text != nil {
			var err error
			if data, err = setMember(doc, names, text); err != nil {
				return nil, err
			}
		}
		// All layers are read with the new text in place, before it is
		// written: what can't be loaded must not be saved.
		after = &loader{src: s.src, read: func(p string) ([]byte, error) {
			if p == path {
				return data, nil
			}
			return readFile(p)
		}}
		var err error
		if _, saved.Warnings, err = after.load(); err != nil {
			return nil, err
		}
		return data, nil
	})
	if err != nil {
		return Saved{}, err
	}
	s.settings, s.files = after.s, after.files
	saved.Warnings = slices.DeleteFunc(saved.Warnings, func(w Warning) bool { return w.Path != path })
	saved.judge(s.settings, k, text)
	return saved, nil
}

// file returns the file of a layer. Where the workspace is the user's home,
// its project file is the user's.
func (s *Store) file(layer *Layer) (string, error) {
	path := ""
	switch *layer {
	case LayerUser:
		if path = s.src.UserFile(); path == "" {
			return "", errors.New("there is no home directory to save to")
		}
	case LayerProject:
		workspace := s.settings.Workspace()
		if workspace == "" {
			return "", errors.New("there is no workspace to save to")
		}
		path = settingsFile(workspace)
		if same(path, s.src.UserFile()) {
			*layer = LayerUser
			path = s.src.UserFile()
			break
		}
		if !inside(workspace, path) {
			return "", fmt.Errorf("%s is a link that leads out of the workspace", path)
		}
	default:
		return "", fmt.Errorf("nothing is saved to the layer %q: want %q or %q", *layer, LayerUser, LayerProject)
	}
	return filepath.Abs(path)
}

// locate finds the key that a name means and the names that lead to it.
func locate(name string) (*Key, []string, error) {
	keys := Keys()
	if k := lookup(keys, name); k != nil {
		return k, strings.Split(name, "."), nil
	}
	for i := range keys {
		k := &keys[i]
		if entry, ok := strings.CutPrefix(name, k.Name+"."); ok && entry != "" && hasEntries(k.Kind) {
			return k, []string{k.Name, entry}, nil
		}
	}
	return nil, nil, &Error{Key: name, Found: "an unknown key", Takes: "a key of the settings", Hint: didYouMean(name, keyNames(keys))}
}

func hasEntries(k Kind) bool {
	switch k {
	case KindModelMap, KindEffortMap, KindProviders, KindRawMap, KindPermissions:
		return true
	}
	return false
}

// encodeValue returns the JSON of a value, nil for one that says nothing.
func encodeValue(k *Key, value any) ([]byte, error) {
	if _, err := json.Marshal(value); err != nil {
		return nil, err
	}
	data := encode(value)
	d, bad := parseValue(string(data))
	if bad != nil {
		return nil, bad
	}
	silent := d.root.kind == nullNode
	switch k.Kind {
	case KindModel, KindEffort, KindModelMap, KindEffortMap:
		silent = silent || d.root.kind == stringNode && (d.root.text == "" || strings.EqualFold(d.root.text, "inherit"))
	}
	if silent {
		return nil, nil
	}
	return data, nil
}

// judge finds out whether what was saved is what counts.
func (saved *Saved) judge(s *Settings, k *Key, text []byte) {
	gathers := k.Combine == CombineAdd && k.Kind != KindBool || k.Kind == KindRaw
	origins := map[Origin]bool{}
	for _, r := range s.Lookup(saved.Key) {
		switch {
		case saved.Key != k.Name && r.Key != saved.Key: // another entry, whose name goes on after a dot
		case r.Origin.Layer == saved.Layer && r.Origin.Path == saved.Path, sameJSON(r.Value, text):
			saved.InForce = true
		case r.Origin.Layer != LayerDefault:
			origins[r.Origin] = true
		}
	}
	if saved.Removed {
		saved.InForce = len(origins) == 0
	}
	if saved.InForce || gathers && !saved.Removed {
		saved.InForce = saved.InForce || gathers && len(saved.Warnings) == 0
		return
	}
	saved.HiddenBy = slices.SortedFunc(maps.Keys(origins), func(a, b Origin) int {
		return strings.Compare(a.String(), b.String())
	})
}

func sameJSON(v any, text []byte) bool {
	return text != nil && bytes.Equal(encode(v), text)
}
