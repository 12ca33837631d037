//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/internal/cli"
)

// sarifSchema holds what the schema of SARIF 2.1.0 says of the objects that are
// written here: which properties there are, which are required, and their values.
const sarifSchema = `{
  "type": "object", "required": ["version", "runs"], "additionalProperties": false,
  "properties": {
    "$schema": {"type": "string"},
    "version": {"enum": ["2.1.0"]},
    "runs": {"type": "array", "items": {
      "type": "object", "required": ["tool"], "additionalProperties": false,
      "properties": {
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "tool": {"type": "object", "required": ["driver"], "additionalProperties": false, "properties": {"driver": {
          "type": "object", "required": ["name"], "additionalProperties": false,
          "properties": {
            "name": {"type": "string"}, "version": {"type": "string"}, "informationUri": {"type": "string"},
            "rules": {"type": "array", "uniqueItems": true, "items": {
              "type": "object", "required": ["id"], "additionalProperties": false,
              "properties": {
                "id": {"type": "string"},
                "shortDescription": {"$ref": "#/$defs/text"}, "fullDescription": {"$ref": "#/$defs/text"}, "help": {"$ref": "#/$defs/text"},
                "defaultConfiguration": {"type": "object", "additionalProperties": false, "properties": {"level": {"$ref": "#/$defs/level"}}}
              }
            }}
          }
        }}},
        "results": {"type": "array", "items": {
          "type": "object", "required": ["message"], "additionalProperties": false,
          "properties": {
            "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1}, "level": {"$ref": "#/$defs/level"},
            "message": {"type": "object", "additionalProperties": false, "required": ["text"],
              "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}},
            "locations": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"physicalLocation": {
              "type": "object", "additionalProperties": false, "required": ["artifactLocation"],
              "properties": {
                "artifactLocation": {"type": "object", "additionalProperties": false, "properties": {"uri": {"type": "string"}, "uriBaseId": {"type": "string"}}},
                "region": {"type": "object", "additionalProperties": false, "required": ["startLine"], "properties": {
                  "startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}}}
              }
            }}}}
          }
        }}
      }
    }}
  },
  "$defs": {
    "level": {"enum": ["none", "note", "warning", "error"]},
    "text": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}}
  }
}`

// TestSARIF checks the log of files in which everything is found that has an
// example: the rules of the format hold, and nothing is lost.
func TestSARIF(t *testing.T) {
	dir := t.TempDir()
	args := []string{"agents", "validate", "--format", "sarif", "--elsewhere"}
	wanted := map[string]bool{}
	for _, r := range agents.Rules() {
		if r.Bad == "" {
			continue
		}
		wanted[r.Code] = true
		file := filepath.Join(dir, "a b"+r.Code, r.File)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
		if err := os.WriteFile(file, []byte(r.Bad), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), &cli.Process{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Home: dir,
	})
	if code != 1 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(sarifSchema), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var instance any
	if err := json.Unmarshal(out.Bytes(), &instance); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(instance); err != nil {
		t.Error(err)
	}
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Locations []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	for _, r := range run.Results {
		delete(wanted, r.RuleID)
		if got := run.Tool.Driver.Rules[r.RuleIndex].ID; got != r.RuleID {
			t.Errorf("a result of %s points to the rule %s", r.RuleID, got)
		}
		uri := r.Locations[0].PhysicalLocation.ArtifactLocation.URI
		if !strings.HasPrefix(uri, "file:///") || !strings.Contains(uri, "/a%20b") {
			t.Errorf("%s is no URI of the file", uri)
		}
	}
	if len(wanted) > 0 {
		t.Errorf("not in the log: %v", wanted)
	}
}
