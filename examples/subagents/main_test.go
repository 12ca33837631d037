package main

// The output of the example is its test.
func Example() {
	main()
	// Output:
	// ## 1. list the files
	// librarian reports:
	//
	// 2 files (find_files **/*)
	//
	// plan.md
	// plants.txt
	//
	// ## 2. find TODO
	// gardener reports:
	//
	// 1 TODO comment in 1 file
	//
	// plan.md:3: TODO: water the plants
}
