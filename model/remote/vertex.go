package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	synapse "github.com/synapse-agents/synapse"
)

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// tokenSlack is how long a token has to hold still when a request goes out.
const tokenSlack = time.Minute

// googleToken gets access tokens for what a credentials file says, one at a
// time, and keeps the last one while it holds.
type googleToken struct {
	file   []byte
	kind   google.CredentialsType
	client *http.Client
	turn   chan struct{} // a lock that can be given up waiting for
	last   *oauth2.Token
}

func newGoogleToken(file []byte, client *http.Client) (*googleToken, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(file, &head); err != nil {
		return nil, errors.New("the Google credentials are not JSON")
	}
	// Other types fetch a token from wherever the file says, or run a command.
	switch kind := google.CredentialsType(head.Type); kind {
	case google.ServiceAccount, google.AuthorizedUser, google.ImpersonatedServiceAccount:
		return &googleToken{file: file, kind: kind, client: client, turn: make(chan struct{}, 1)}, nil
	}
	return nil, fmt.Errorf("credentials of type %q: want a service account's, an authorized user's or an impersonated service account's", head.Type)
}

// get returns a token. A failure to get one is the provider's, of the kind that
// its answer is of.
func (g *googleToken) get(ctx context.Context) (string, *synapse.ProviderError) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", &synapse.ProviderError{Kind: synapse.ErrorNetwork, Message: "get a Google access token: given up", Err: context.Cause(ctx)}
	}
	if g.last.Valid() && (g.last.Expiry.IsZero() || time.Until(g.last.Expiry) > tokenSlack) {
		return g.last.AccessToken, nil
	}
	// The library sends some of its requests without the context.
	client := &http.Client{Transport: inContext{ctx, g.client}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	credentials, err := google.CredentialsFromJSONWithType(ctx, g.file, g.kind, googleScope)
	if err != nil {
		return "", &synapse.ProviderError{Kind: synapse.ErrorAuth, Message: "read the Google credentials: " + oneLine(err.Error()), Err: err}
	}
	token, err := credentials.TokenSource.Token()
	if err != nil {
		return "", noToken(err)
	}
	g.last = token
	return token.AccessToken, nil
}

// noToken is the failure to get a token. An answer of a token server's is short
// and made for programs; what it quotes is no secret.
func noToken(err error) *synapse.ProviderError {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) || answer.Response == nil {
		return &synapse.ProviderError{Kind: synapse.ErrorNetwork, Message: "get a Google access token: " + oneLine(err.Error()), Err: err}
	}
	fault := refusal(answer.Response.StatusCode, answer.Response.Header, answer.Body)
	if fault.Kind == synapse.ErrorRequest { // an expired or revoked grant is a 400
		fault.Kind = synapse.ErrorAuth
	}
	fault.Message = "get a Google access token: " + fault.Message
	return fault
}

// inContext sends requests in a context of its own.
type inContext struct {
	ctx    context.Context
	client *http.Client
}

// RoundTrip sends the request.
func (t inContext) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(req.WithContext(t.ctx))
}
