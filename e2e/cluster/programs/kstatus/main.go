// How Flux, kpt and Helm judge objects: kstatus, as Flux has it. For each JSON object on stdin one on stdout.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type judgement struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	objects, judgements := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		if err := objects.Decode(&raw); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw); err != nil {
			log.Fatal(err)
		}
		judged, err := status.Compute(&object)
		if err != nil {
			log.Fatal(err)
		}
		if err := judgements.Encode(judgement{judged.Status.String(), judged.Message}); err != nil {
			log.Fatal(err)
		}
	}
}
