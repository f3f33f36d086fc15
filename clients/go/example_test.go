package client_test

import (
	"context"
	"errors"
	"fmt"
	"log" //nolint:depguard // examples read like the programs of others
	"os"

	"facet.internal/client"
)

func Example() {
	ctx := context.Background()
	c, err := client.FromDev("dev/dev.json")
	if err != nil {
		log.Fatal(err)
	}
	employees, err := c.CreateGallery(ctx, client.NewGallery{Name: "employees", FaceMinimumQualityScore: 0.45, Size: 1000})
	if err != nil {
		log.Fatal(err)
	}
	c = c.WithAPIKey(employees.APIKey)

	photo, err := os.ReadFile("assets/photos/face_recognition/obama.jpg")
	if err != nil {
		log.Fatal(err)
	}
	registered, err := c.Register(ctx, client.Photo{Image: photo})
	if err != nil {
		log.Fatal(err)
	}

	probe, err := os.ReadFile("assets/photos/face_recognition/obama2.jpg")
	if err != nil {
		log.Fatal(err)
	}
	found, err := c.Search(ctx, client.SearchQuery{Probe: probe})
	if err != nil {
		log.Fatal(err)
	}
	for _, candidate := range found.Candidates {
		fmt.Println(candidate.ID == registered.ID, candidate.Score >= 7000)
	}

	score, err := c.VerifySubject(ctx, registered.ID, probe)
	if err != nil {
		log.Fatal(err) // client.ErrNotVerified below the threshold
	}
	fmt.Println(score >= 7000)

	if err := errors.Join(c.Unregister(ctx, registered.ID), c.DeleteGallery(ctx, employees.ID)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true true
	// true
}

func ExampleClient_VerifyFaces() {
	c, err := client.FromDev("dev/dev.json")
	if err != nil {
		log.Fatal(err)
	}
	one, _ := os.ReadFile("assets/photos/face_recognition/obama.jpg")
	other, _ := os.ReadFile("assets/photos/face_recognition/biden.jpg")

	score, err := c.VerifyFaces(context.Background(), one, other)
	switch {
	case err == nil:
		fmt.Println("the same person, with a score of", score)
	case errors.Is(err, client.ErrNotVerified):
		fmt.Println("not the same person")
	default:
		log.Fatal(err)
	}
	// Output: not the same person
}

func ExampleError() {
	c, err := client.FromDev("dev/dev.json")
	if err != nil {
		log.Fatal(err)
	}
	rocket, _ := os.ReadFile("assets/photos/scikit-image/rocket.jpg")

	_, err = c.Extract(context.Background(), rocket, 0)
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Status, e.Type, e.Code)
	}
	// Output: 400 NoFace 2001
}

func ExampleClient_AllSubjects() {
	ctx := context.Background()
	c, err := client.FromDev("dev/dev.json")
	if err != nil {
		log.Fatal(err)
	}
	visitors, err := c.CreateGallery(ctx, client.NewGallery{Name: "visitors", FaceMinimumQualityScore: 0.45, Size: 10})
	if err != nil {
		log.Fatal(err)
	}
	c = c.WithAPIKey(visitors.APIKey)
	photo, _ := os.ReadFile("assets/photos/face_recognition/biden.jpg")
	if _, err := c.Register(ctx, client.Photo{Image: photo}); err != nil {
		log.Fatal(err)
	}

	for entry, err := range c.AllSubjects(ctx, client.Descending) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Status)
	}
	// Output: A
}
