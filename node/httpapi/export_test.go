package httpapi

// Operations returns the method and the pattern of each operation.
func Operations() (list [][2]string) {
	for _, o := range operations {
		list = append(list, [2]string{o.method, o.pattern})
	}
	return list
}
