package main

// The output of the example is its test.
func Example() {
	main()
	// Output:
	// main calls task
	// main starts explore: read the plan
	// explore calls read_file
	// explore has the result of read_file (error: true)
	// explore completed after 2 turns: plan.md does not exist.
	// main has the result of task (error: false)
	// main completed after 2 turns: There is no plan yet.
}
