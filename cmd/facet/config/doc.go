// Package config defines the settings of `facet serve`: their names, their defaults,
// and which place wins when several give a value:
//
//	flag  >  FACET_* environment variable  >  YAML file  >  default
//
// A setting has one name everywhere: the flag --peer-address is
// FACET_PEER_ADDRESS in the environment and peer-address in the file. An
// unknown name in the file is an error. Lists are separated by commas in flags and
// the environment.
//
// It may import everything below cmd, and is the only package that knows koanf.
package config
