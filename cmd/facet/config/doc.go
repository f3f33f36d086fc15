// Package config owns what `facet serve` can be told: the names of the settings,
// their defaults, and the order in which the places that give them win:
//
//	flag  >  FACET_* environment variable  >  YAML file  >  default
//
// A setting has one name everywhere: the flag --peer-address is
// FACET_PEER_ADDRESS in the environment and peer-address in the file. A name in
// the file that does not exist is an error; lists are separated by commas in
// flags and the environment.
//
// It may import everything below cmd, and is the only package that knows koanf.
package config
