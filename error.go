package synapse

import (
	"fmt"
	"time"
)

// ErrorKind classifies a provider's failure by what can be done about it.
type ErrorKind string

// The kinds of provider failures.
const (
	ErrorAuth        ErrorKind = "auth"        // the key is missing, wrong or not allowed
	ErrorRequest     ErrorKind = "request"     // the provider refuses this request as it is
	ErrorNotFound    ErrorKind = "not_found"   // the provider has no such model, or nothing at that address
	ErrorContext     ErrorKind = "context"     // the conversation does not fit the model's window
	ErrorRateLimit   ErrorKind = "rate_limit"  // 429
	ErrorOverloaded  ErrorKind = "overloaded"  // 503, 529
	ErrorServer      ErrorKind = "server"      // other 5xx
	ErrorNetwork     ErrorKind = "network"     // no connection, or it broke before any byte
	ErrorStream      ErrorKind = "stream"      // the reply broke off, or fell silent
	ErrorMalformed   ErrorKind = "malformed"   // the reply is not what the wire format says
	ErrorUnsupported ErrorKind = "unsupported" // the model at hand can't do this (the offline rules)
)

// A ProviderError is the one error type for a model that did not answer.
type ProviderError struct {
	Provider   string
	Model      string
	Kind       ErrorKind
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // what the provider asked for, 0 when it did not
	Message    string
	Err        error // the cause, may be nil
}

// Error returns one line that names provider, status and what was said.
func (e *ProviderError) Error() string {
	who := e.Provider
	if e.Model != "" {
		who += ":" + e.Model
	}
	if who == "" {
		who = "model"
	}
	msg := e.Message
	if msg == "" && e.Err != nil {
		msg = e.Err.Error()
	}
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d): %s", who, e.Kind, e.Status, msg)
	}
	return fmt.Sprintf("%s: %s: %s", who, e.Kind, msg)
}

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *ProviderError) Retryable() bool {
	switch e.Kind {
	case ErrorRateLimit, ErrorOverloaded, ErrorServer, ErrorNetwork, ErrorStream, ErrorMalformed:
		return true
	}
	return false
}
