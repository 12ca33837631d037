package main

// The output of the example is its test.
func Example() {
	main()
	// Output:
	// may call: [read_file search_files]
	// execute: not_listed
	// security-scanner reports:
	//
	// “PASSWORD”: 1 line in 1 file
	//
	// db.py:3: PASSWORD = "hunter2"
}
