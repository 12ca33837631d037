// Package synapse holds the nouns of a sub-agent system: messages, tools,
// models, specs, graphs and events. It does no I/O and imports nothing but the
// standard library and the policy package, so that every other package (and a
// program that embeds Synapse) can speak of the same things without pulling in
// a runtime.
//
// The verbs live elsewhere: package agents reads definition files, package
// compile turns them into a [Graph], package run executes a graph and yields
// [Event] values, package trace keeps those, and package host assembles all of
// it for one workspace.
package synapse
