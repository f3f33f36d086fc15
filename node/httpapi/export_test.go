package httpapi

// Operations returns the method and the pattern of each operation.
func Operations() (list [][2]string) {
	for _, o := range operations {
		list = append(list, [2]string{o.method, o.pattern})
	}
	return list
}

// Imaging returns the names of the operations that search, or take an image.
func Imaging() (list []string) {
	for _, o := range operations {
		if o.takes != aLittle {
			list = append(list, o.name())
		}
	}
	return list
}
