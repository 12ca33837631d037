package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// structured takes the JSON value out of a final text and checks it. Models like
// to wrap it in a code fence or a sentence: the fence is taken off, a sentence is
// not a value.
func structured(schema *jsonschema.Resolved, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("the reply is empty")
	}
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		if _, rest, ok = strings.Cut(rest, "\n"); ok {
			if body, ok := strings.CutSuffix(strings.TrimSpace(rest), "```"); ok {
				text = strings.TrimSpace(body)
			}
		}
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("it is not JSON: %v", err)
	}
	if dec.More() {
		return "", errors.New("there is something after the JSON value")
	}
	if err := schema.Validate(v); err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return "", err
	}
	return compact.String(), nil
}
