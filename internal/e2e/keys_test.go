package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/node/wire"
)

// tenantOf creates a tenant and returns its keys.
func tenantOf(t *testing.T, c operated, name string) (keys wire.KeyPair) {
	t.Helper()
	out, err := facet(append([]string{"tenant", "create", name, "--json"}, c.where()...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	decode(t, out, &keys)
	return keys
}

// key runs a `facet key` command, which must succeed, and decodes its JSON into v.
func (c *cluster) key(t *testing.T, v any, args ...string) {
	t.Helper()
	out, err := facet(append(append([]string{"key"}, args...), "--dir", c.dir, "--json")...)
	if err != nil {
		t.Fatalf("facet key %v: %v: %s", args, err, out)
	}
	decode(t, out, v)
}

func TestAccessKeysRotateWithoutBreak(t *testing.T) {
	t.Parallel()
	c := shared(t)
	tenant := "keys-" + strings.ToLower(t.Name())
	first := tenantOf(t, c, tenant)
	k := c.keyless(t).with(first)

	var second, reader wire.KeyPair
	c.key(t, &second, "rotate", "--tenant", tenant)
	if second.Old != first.AccessKey || second.Role != "admin" || len(second.SecretKey) != 40 {
		t.Errorf("rotate: got %+v, want the old key %s named", second, first.AccessKey)
	}
	for node := range c.info.BaseURLs {
		k.with(first).get(t, node, "/api/galleries").Want(t, 200, nil)
		k.with(second).get(t, node, "/api/galleries").Want(t, 200, nil)
	}
	if out, err := facet("key", "rotate", "--tenant", tenant, "--dir", c.dir); err == nil || !strings.Contains(out, "revoke one of them first") {
		t.Errorf("a third key: got %v, %s", err, out)
	}
	c.key(t, &reader, "create", "--tenant", tenant, "--role", "read-only")
	k.with(reader).get(t, 1, "/v1.1/health").Want(t, 200, nil)
	k.with(reader).get(t, 1, "/api/galleries").Want(t, 403, nil)

	c.key(t, nil, "revoke", first.AccessKey, "--tenant", tenant)
	for node := range c.info.BaseURLs {
		within(t, "the revoked key is refused", func() error {
			if a := k.with(first).get(t, node, "/api/galleries"); a.Status != 403 {
				return fmt.Errorf("node %d answers %d %s", node, a.Status, a.Body)
			}
			return nil
		})
		k.with(second).get(t, node, "/api/galleries").Want(t, 200, nil)
	}
	var list []wire.Key
	c.key(t, &list, "list", "--tenant", tenant)
	got := map[string]string{}
	for _, l := range list {
		got[l.AccessKey] = l.Role + " " + l.State
	}
	if len(got) != 3 || got[first.AccessKey] != "admin revoked" || got[second.AccessKey] != "admin live" || got[reader.AccessKey] != "read-only live" {
		t.Errorf("list: got %v", got)
	}
	out, err := facet("key", "list", "--tenant", tenant, "--dir", c.dir)
	if err != nil || !strings.Contains(out, first.AccessKey) || strings.Contains(out, second.SecretKey) {
		t.Errorf("list for people: %v, %s", err, out)
	}
}

func TestKeyCommandExplainsErrors(t *testing.T) {
	t.Parallel()
	c := shared(t)
	f := func(want string, args ...string) {
		t.Helper()
		if out, err := facet(append([]string{"key"}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("facet key %v: got %v, %q, want %q", args, err, out, want)
		}
	}
	f("--tenant is needed", "list", "--dir", c.dir)
	f("admin, biometric, read-only, enrol-only, search-only", "create", "--tenant", "x", "--role", "king", "--dir", c.dir)
	f(`--role is needed`, "create", "--tenant", "nobody", "--dir", c.dir)
	f(`no tenant "nobody"`, "create", "--tenant", "nobody", "--role", "admin", "--dir", c.dir)
	f(`no tenant "nobody"`, "list", "--tenant", "nobody", "--dir", c.dir)
	f(`no tenant "nobody"`, "revoke", "K", "--tenant", "nobody", "--dir", c.dir)
	f("no cluster", "list", "--tenant", "x", "--dir", filepath.Join(t.TempDir(), "nowhere"))
	f("KEY is missing", "revoke", "--tenant", "x", "--dir", c.dir)
	if out, err := facet("tenant", "create", "wrong-keys", "--dir", c.dir); err != nil {
		t.Fatal(out)
	}
	f("no access key", "revoke", "FACETX/../tenants?", "--tenant", "wrong-keys", "--dir", c.dir)
	f("create one", "rotate", "--tenant", "wrong-keys", "--role", "biometric", "--dir", c.dir)
	f("create one", "rotate", "--tenant", "wrong-keys", "--holder", "door 3", "--dir", c.dir)
	door := []string{"create", "--tenant", "wrong-keys", "--role", "search-only", "--dir", c.dir}
	f("such as 2027-01-31", append(door, "--until", "tomorrow")...)
	f("2020-01-31 is over", append(door, "--until", "2020-01-31")...)
	f("no network such as", append(door, "--network", "10.0.0.0/33")...)
	f(`no gallery "nowhere"`, append(door, "--gallery", "nowhere")...)
}

func TestDoorHasKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	c := shared(t)
	tenant := "doors-" + strings.ToLower(t.Name())
	var door wire.KeyPair
	first := tenantOf(t, c, tenant)
	k := c.keyless(t).with(first)
	k.post(t, 0, "/api/galleries", map[string]any{"name": "staff", "size": 10, "faceMinimumQualityScore": .45}).Want(t, 200, nil)

	out, err := facet("key", "create", "--tenant", tenant, "--role", "search-only", "--holder", "door 3", "--gallery", "staff",
		"--network", "127.0.0.1", "--until", "2099-12-31", "--dir", c.dir)
	for _, part := range []string{"role        search-only\n", "holder      door 3\n", "galleries   staff\n", "networks    127.0.0.1/32\n", "ends        2100-01-01 00:00:00Z\n"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("create: %v, %s, want %q", err, out, part)
		}
	}
	c.key(t, &door, "rotate", "--tenant", tenant, "--role", "search-only", "--holder", "door 3")
	k.with(door).get(t, 1, "/v1.1/health").Want(t, 200, nil)
	k.with(door).get(t, 1, "/api/galleries").Want(t, 403, nil)
	var list []wire.Key
	within(t, "the use of the door's key is noted", func() error {
		c.key(t, &list, "list", "--tenant", tenant)
		if i := slices.IndexFunc(list, func(l wire.Key) bool { return l.AccessKey == door.AccessKey }); list[i].Holder != "door 3" || time.Since(list[i].Used) > time.Hour {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	if out, err := facet("key", "list", "--tenant", tenant, "--dir", c.dir); err != nil || !strings.Contains(out, "LAST USE") || !strings.Contains(out, "staff, 127.0.0.1/32") {
		t.Errorf("list for people: %v, %s", err, out)
	}
}
