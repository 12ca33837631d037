package run

import (
	"encoding/json"
	"fmt"

	"github.com/synapse-agents/synapse"
)

// fits checks what joins a key, nil for no key.
func (k *preparedKey) fits(value any) error {
	if k == nil || k.items == nil {
		return nil
	}
	check := func(v any) error {
		if err := k.items.Validate(v); err != nil {
			return fmt.Errorf("it does not fit state.%s: %w", k.Name, err)
		}
		return nil
	}
	if list, ok := value.([]any); ok && k.Reduce == synapse.ReduceAppend {
		for _, v := range list {
			if err := check(v); err != nil {
				return err
			}
		}
		return nil
	}
	return check(value)
}

// read makes a value of what an agent said: JSON where the key, or the agent's
// own schema, wants that; else the text.
func (k *preparedKey) read(text string, structured bool) (any, error) {
	var value any = text
	if structured || k != nil && k.items != nil && !k.text && k.items.Schema().Type != "" {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
	}
	return value, k.fits(value)
}

// jsonValue makes a JSON value of what a function has returned.
func jsonValue(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, float64, map[string]any, []any:
		return v, nil
	case int:
		return float64(v), nil
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("its output has no JSON form: %w", err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("its output has no JSON form: %w", err)
	}
	return out, nil
}
