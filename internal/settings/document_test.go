package settings_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/synapse-agents/synapse/internal/settings"
)

func TestDamagedFiles(t *testing.T) {
	tests := []struct {
		name, text   string
		line, column int
		says         string
	}{
		{"empty", "", 1, 1, "an empty settings file is {}"},
		{"blank", " \n\n", 3, 1, "an empty settings file is {}"},
		{"cut off", "{\n  \"readonly\": true", 2, 19, "the file is cut off"},
		{"trailing comma", "{\n  \"readonly\": true,\n}", 2, 19, "remove the comma after the last element"},
		{"trailing comma in a list", "{\"excluded_tools\": [\"execute\",]}", 1, 30, "remove the comma after the last element"},
		{"line comment", "{\n  // why\n  \"readonly\": true\n}", 2, 3, "no comments"},
		{"block comment", "{\"readonly\": /* yes */ true}", 1, 14, "no comments"},
		{"hash comment", "# mine\n{}", 1, 1, "no comments"},
		{"missing comma", "{\"readonly\": true\n \"intent\": true}", 2, 2, "a comma is missing"},
		{"single quotes", "{'readonly': true}", 1, 2, "double quotes"},
		{"bare name", "{readonly: true}", 1, 2, `names stand in double quotes: "readonly"`},
		{"capital word", "{\"readonly\": True}", 1, 14, "write it in lower case: true"},
		{"python's None", "{\"model\": None}", 1, 11, "null"},
		{"equals sign", "{\"readonly\" = true}", 1, 13, `joined by ":"`},
		{"twice", "{\"readonly\": true,\n \"intent\": true,\n \"readonly\": false}", 3, 2, "line 1"},
		{"twice inside", "{\"limits\": {\"tokens\": 1, \"tokens\": 2}}", 1, 26, "each name once"},
		{"twice by escape", "{\"readonly\": true, \"read\\u006fnly\": false}", 1, 20, "each name once"},
		{"open string", "{\"model\": \"a", 1, 11, `closing "`},
		{"line break in a string", "{\"model\": \"a\nb\"}", 1, 13, `\n`},
		{"control character", "{\"model\": \"a\tb\"}", 1, 13, `\u0009`},
		{"bad escape", `{"custom_agents_dirs": ["C:\agents"]}`, 1, 25, "Windows"},
		{"bad number", `{"max_depth": 03}`, 1, 15, "number"},
		{"text after", "{}\n{}", 2, 1, "the end of the file"},
		{"an array", "[]", 1, 1, "an object"},
		{"not UTF-8", "{\"model\": \"\xff\"}", 1, 12, "UTF-8"},
		{"UTF-16", "\xff\xfe{\x00}\x00", 1, 1, "UTF-16"},
		{"after wide characters", "{\"模型\": 1,,}", 1, 10, "a name in double quotes"},
		{"after a byte order mark", "\xef\xbb\xbf{,}", 1, 2, "a name in double quotes"},
		{"too deep", `{"hooks": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", 1, 74, "64 brackets"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, file := range []string{userFile, exeFile, projectFile} {
				m := newMachine(t).write(file, tt.text)
				e := m.bad()
				if e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Error(), tt.says) || e.Path != m.path(file) {
					t.Errorf("%d:%d %v\nwant %d:%d and %q", e.Line, e.Column, e, tt.line, tt.column, tt.says)
				}
				if m.read(file) != tt.text {
					t.Error("loading changed the file")
				}
			}
		})
	}
}

func TestReadableFiles(t *testing.T) {
	for _, text := range []string{
		"{}", "\xef\xbb\xbf{\"readonly\": true}", "{\r\n\"readonly\": true\r\n}\r\n", "{\"max_depth\": 2e0}", `{"x": {"a": [1, -0.5e+3, "\u00e9\ud83d\ude00", null, {}]}}`,
	} {
		if e := newMachine(t).write(userFile, text).show(); strings.Contains(e, "error") {
			t.Errorf("%q: %s", text, e)
		}
	}
}

func TestPermissionsHavePlaces(t *testing.T) {
	m := newMachine(t).write(userFile, "{\n  \"permissions\": {\n    \"execute\": {\n      \"git *\": \"allow\",\n      \"*\": \"ask\"\n    },\n    \"*\": \"deny\"\n  }\n}")
	s, _ := m.load()
	if len(s.Permissions) != 1 || s.Permissions[0].Origin != "user settings (~/.synapse/settings.json)" {
		t.Fatalf("permissions %+v", s.Permissions)
	}
	data, _ := json.Marshal(s.Permissions[0].Rules)
	want := `[{"tool":"execute","pattern":"git *","action":"allow","line":4},{"tool":"execute","pattern":"*","action":"ask","line":5},{"tool":"*","pattern":"*","action":"deny","line":7}]`
	if string(data) != want {
		t.Errorf("rules %s\nwant  %s", data, want)
	}
	if e := m.write(userFile, "{\n  \"permissions\": {\"execute\": {\n      \"git *\": \"sure\"}}}").bad(); e.Line != 3 || e.Column != 16 {
		t.Errorf("%d:%d %v, want 3:16", e.Line, e.Column, e)
	}
	if e := m.write(userFile, `{"readonly": false, "permissions": "sure"}`).bad(); e.Line != 1 || e.Column != 36 {
		t.Errorf("%d:%d %v, want 1:36", e.Line, e.Column, e)
	}
}

// FuzzLoad gives any bytes as the user's settings. Whatever loads is JSON, and
// a value saved into it is the one that loads afterwards, while the other names
// stay.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"{}", `{"model": "openai:gpt-5", "x": [1, {"y": null}]}`, "{\n\t\"limits\": {\"tokens\": 5},\n\t\"intent\": false\n}\n", `{"readonly": true,}`, "\xef\xbb\xbf{ }",
		`{"permissions": {"execute": {"git *": "allow"}}}`, `{"intent":true,"intent":false}`, `{"a\"b": "\\"}`, `{"subagent_model_overrides": {"é": "openai:x"}}`, "{\r\n  \"max_depth\": 3\r\n}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachine(t).write(userFile, string(data))
		store, _, err := openStore(m)
		if m.read(userFile) != string(data) {
			t.Fatal("loading changed the file")
		}
		text := strings.TrimPrefix(string(data), "\xef\xbb\xbf")
		if err != nil {
			var e *settings.Error
			if errors.As(err, &e) && e.Key == "" && e.Err == nil && json.Valid([]byte(text)) && utf8.Valid(data) && strings.HasPrefix(strings.TrimSpace(text), "{") &&
				!strings.Contains(e.Found, "second time") && !strings.Contains(e.Found, "brackets") {
				t.Fatalf("refused valid JSON: %v", e)
			}
			return
		}
		var before map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			t.Fatalf("loaded what is no JSON: %v", err)
		}
		saveBoth(t, store)
		var after map[string]json.RawMessage
		if err := json.Unmarshal([]byte(strings.TrimPrefix(m.read(userFile), "\xef\xbb\xbf")), &after); err != nil {
			t.Fatalf("saved what is no JSON: %v\n%s", err, m.read(userFile))
		}
		for name, value := range before {
			if name != "intent" && name != "limits" && string(after[name]) != string(value) {
				t.Fatalf("%q changed from %s to %s", name, value, after[name])
			}
		}
	})
}
