//go:build !linux

package trace_test

import "errors"

func playNobody(string) error { return errors.New("only on Linux") }
