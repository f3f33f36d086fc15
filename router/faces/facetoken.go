package faces

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/seal"
)

// A face token is the sealed template of a photo of a comparison. The client sends it back, to
// any node, in the place of the photo. The service keeps nothing.
//
//	0         1        9      17      29         29+4·dim
//	┌─────────┬────────┬──────┬───────┬──────────┬─────┐
//	│ version │ expiry │ pack │ nonce │ template │ tag │   little-endian, base64url
//	└─────────┴────────┴──────┴───────┴──────────┴─────┘
//	└───────── authenticated ─┘       └ encrypted┘
//
// The expiry is in milliseconds since 1970, the pack the first bytes of a hash of the identity of the
// model pack. The key is derived from the cluster's key, the cluster, the tenant and the hour of
// the expiry, so one key seals far less than 2³² templates.
const (
	faceTokenVersion = 1
	faceTokenHead    = 17
	// faceTokenLife is how long a token is taken.
	faceTokenLife   = 30 * time.Minute
	faceTokenHour   = 3_600_000 // milliseconds
	faceTokenDimMax = 2048      // as in a pack's manifest
	purposeFace     = "compare-face"
)

// FaceTokenMax is the most characters of a face token.
const FaceTokenMax = (faceTokenHead + seal.Overhead + 4*faceTokenDimMax + 2) / 3 * 4

// Reasons why a token can't be opened.
var (
	errFaceToken        = errors.New("it is not a token of this tenant and cluster, or was changed")
	errFaceTokenExpired = fmt.Errorf("it is older than %.0f minutes; send the photo", faceTokenLife.Minutes())
	errFaceTokenPack    = errors.New("it is of another model pack; send the photo")
)

// faceTokens seals and opens the tokens of one tenant.
type faceTokens struct {
	master  *seal.Master
	cluster id.Cluster
	pack    [8]byte
	tenant  id.Tenant
	now     time.Time
	// keys has the keys that were used, by the hour of expiry: one for each key of the ring.
	keys map[int64][]*seal.Key
}

// faceTokens returns the tokens of a tenant.
func (r *FaceRequests) faceTokens(tenant id.Tenant) *faceTokens {
	c, _ := r.cluster.Groups.Meta().Cluster()
	sum := sha256.Sum256([]byte(c.Pack))
	return &faceTokens{r.cluster.Master, c.ID, [8]byte(sum[:]), tenant, r.cluster.Clock.Now(), map[int64][]*seal.Key{}}
}

// ring returns the keys of tokens that expire at a time.
func (f *faceTokens) ring(expiry int64) []*seal.Key {
	hour := expiry / faceTokenHour
	if keys, ok := f.keys[hour]; ok {
		return keys
	}
	data := append(append([]byte{}, f.cluster.UUID[:]...), f.tenant.UUID[:]...)
	data = binary.LittleEndian.AppendUint64(data, uint64(hour))
	var keys []*seal.Key
	for _, secret := range f.master.MACs(purposeFace, data) {
		key, err := seal.NewKey(secret[:])
		if err != nil {
			panic("bug: router: the key of face tokens: " + err.Error())
		}
		keys = append(keys, key)
	}
	f.keys[hour] = keys
	return keys
}

// expires returns until when the tokens are taken that seal makes.
func (f *faceTokens) expires() time.Time { return f.now.Add(faceTokenLife).Truncate(time.Millisecond) }

// seal returns the token of a template.
func (f *faceTokens) seal(t engine.Template) string {
	expiry := f.expires().UnixMilli()
	head := append(binary.LittleEndian.AppendUint64([]byte{faceTokenVersion}, uint64(expiry)), f.pack[:]...)
	plain := make([]byte, 0, 4*len(t))
	for _, v := range t {
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(v))
	}
	sealed := f.ring(expiry)[0].Seal(plain, head)
	clear(plain)
	return base64.RawURLEncoding.EncodeToString(append(head, sealed...))
}

// open returns the template of a token.
func (f *faceTokens) open(text string) (engine.Template, error) {
	const least = faceTokenHead + seal.Overhead + 4
	if len(text) > FaceTokenMax {
		return nil, errFaceToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < least || (len(b)-least)%4 != 0 || b[0] != faceTokenVersion {
		return nil, errFaceToken
	}
	expiry := int64(binary.LittleEndian.Uint64(b[1:]))
	if expiry > f.now.Add(2*faceTokenLife).UnixMilli() { // derive no key: this cluster made none so late
		return nil, errFaceToken
	}
	var plain []byte
	for _, key := range f.ring(expiry) {
		if plain, err = key.Open(b[faceTokenHead:], b[:faceTokenHead]); err == nil {
			break
		}
	}
	defer clear(plain)
	switch {
	case err != nil:
		return nil, errFaceToken
	case expiry <= f.now.UnixMilli():
		return nil, errFaceTokenExpired
	case [8]byte(b[9:]) != f.pack:
		return nil, errFaceTokenPack
	}
	t := make(engine.Template, len(plain)/4)
	for i := range t {
		t[i] = math.Float32frombits(binary.LittleEndian.Uint32(plain[4*i:]))
	}
	return t, nil
}
