package main

// The output of the example is its test.
func Example() {
	main()
	// Output:
	// weather said: rain
	// Take an umbrella.
}
