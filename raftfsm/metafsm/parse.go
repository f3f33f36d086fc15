package metafsm

import (
	"fmt"

	"facet/internal/codec"
)

// ParseFoundAnswer reads the answer to a Found. The errors of this and of the
// other Parse functions wrap codec.ErrMalformed.
func ParseFoundAnswer(b []byte) (FoundAnswer, error) { return parse[FoundAnswer](b, headFound) }

// ParsePutNode reads an encoded command if it is a PutNode.
func ParsePutNode(b []byte) (PutNode, bool) {
	c, _, err := decode(b)
	put, ok := c.(PutNode)
	return put, ok && err == nil
}

// ParsePutNodeAnswer reads the answer to a PutNode.
func ParsePutNodeAnswer(b []byte) (PutNodeAnswer, error) {
	return parse[PutNodeAnswer](b, headPutNode)
}

// ParsePutShardsAnswer reads the answer to a PutShards.
func ParsePutShardsAnswer(b []byte) (PutShardsAnswer, error) {
	return parse[PutShardsAnswer](b, headPutShards)
}

// ParseCreateTenantAnswer reads the answer to a CreateTenant.
func ParseCreateTenantAnswer(b []byte) (CreateTenantAnswer, error) {
	return parse[CreateTenantAnswer](b, headCreateTenant)
}

// ParsePutAccessKeyAnswer reads the answer to a PutAccessKey.
func ParsePutAccessKeyAnswer(b []byte) (PutAccessKeyAnswer, error) {
	return parse[PutAccessKeyAnswer](b, headPutAccessKey)
}

// ParseCreateGalleryAnswer reads the answer to a CreateGallery.
func ParseCreateGalleryAnswer(b []byte) (CreateGalleryAnswer, error) {
	return parse[CreateGalleryAnswer](b, headCreateGallery)
}

// ParseCreateApplicationAnswer reads the answer to a CreateApplication.
func ParseCreateApplicationAnswer(b []byte) (CreateApplicationAnswer, error) {
	return parse[CreateApplicationAnswer](b, headCreateApplication)
}

// ParseGrantAnswer reads the answer to a Grant.
func ParseGrantAnswer(b []byte) (GrantAnswer, error) { return parse[GrantAnswer](b, headGrant) }

func parse[T any](b []byte, command codec.Head) (T, error) {
	var v T
	err := codec.Decode(b, answerOf(command), &v)
	return v, err
}

// command is a decoded command.
type command interface {
	// apply gives the command its effect and returns the encoded answer.
	apply(m *Machine) []byte
}

// decode reads a command. skip tells that it is one that this binary does not know
// and may leave out.
func decode(b []byte) (c command, skip bool, err error) {
	m, err := codec.Split(b)
	if err != nil {
		return nil, false, err
	}
	switch m.Code {
	case headFound.Code:
		c, err = body[Found](m, headFound)
	case headPutNode.Code:
		c, err = body[PutNode](m, headPutNode)
	case headPutShards.Code:
		c, err = body[PutShards](m, headPutShards)
	case headSetNodeState.Code:
		c, err = body[SetNodeState](m, headSetNodeState)
	case headCreateTenant.Code:
		c, err = body[CreateTenant](m, headCreateTenant)
	case headPutAccessKey.Code:
		c, err = body[PutAccessKey](m, headPutAccessKey)
	case headCreateGallery.Code:
		c, err = body[CreateGallery](m, headCreateGallery)
	case headCreateApplication.Code:
		c, err = body[CreateApplication](m, headCreateApplication)
	case headGrant.Code:
		c, err = body[Grant](m, headGrant)
	case headUpdateGallery.Code:
		c, err = body[UpdateGallery](m, headUpdateGallery)
	case headSettle.Code:
		c, err = body[Settle](m, headSettle)
	case headDeleteGallery.Code:
		c, err = body[DeleteGallery](m, headDeleteGallery)
	case headForgetGallery.Code:
		c, err = body[ForgetGallery](m, headForgetGallery)
	case headUpdateApplication.Code:
		c, err = body[UpdateApplication](m, headUpdateApplication)
	case headDeleteApplication.Code:
		c, err = body[DeleteApplication](m, headDeleteApplication)
	case headDeleteAccessKey.Code:
		c, err = body[DeleteAccessKey](m, headDeleteAccessKey)
	case headReclaim.Code:
		c, err = body[Reclaim](m, headReclaim)
	case headCreateTag.Code:
		c, err = body[CreateTag](m, headCreateTag)
	case headRenameTag.Code:
		c, err = body[RenameTag](m, headRenameTag)
	case headDeleteTag.Code:
		c, err = body[DeleteTag](m, headDeleteTag)
	case headLoad.Code:
		c, err = body[Load](m, headLoad)
	case headRaiseLevel.Code:
		c, err = body[RaiseLevel](m, headRaiseLevel)
	case headRekey.Code:
		c, err = body[Rekey](m, headRekey)
	default:
		if m.Code&codec.Skippable != 0 {
			return nil, true, nil
		}
		err = fmt.Errorf("%w: unknown command %d", codec.ErrMalformed, m.Code)
	}
	if err != nil {
		return nil, false, err
	}
	return c, false, nil
}

func body[T any](m codec.Message, h codec.Head) (T, error) {
	var v T
	err := m.Decode(h, &v)
	return v, err
}
