// Package compile turns agent definitions and the facts of a host (its tools,
// settings, flags and models) into a [synapse.Graph]: plain specs that a
// runtime executes, joined by the edges along which one agent may start
// another.
//
// Everything here is a pure function of its input: no file is read, no clock
// asked, no environment consulted. The same input gives the same bytes, in
// whatever order its definitions and maps come, so specs can be compared,
// hashed and shipped.
//
// [Effective] is the one place that decides which tools an agent has. The
// policy it returns goes into the spec, and the prompt, the task tool's text
// and [Explain] are read off that value.
package compile
