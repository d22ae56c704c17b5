// What Argo CD sees between Git and the cluster, by its own comparison. For each JSON object on stdin, with
// `config` from Git, `live` from the cluster, and for its server-side way `predicted`, what a dry run would leave,
// one on stdout.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	Config, Live *unstructured.Unstructured
	Predicted    json.RawMessage
}

type answer struct {
	Modified  bool            `json:"modified"`
	Predicted json.RawMessage `json:"predicted"`
}

// dryRun is the API server's answer, which was asked for before.
type dryRun struct{ predicted json.RawMessage }

func (d dryRun) Run(context.Context, *unstructured.Unstructured, string) (string, error) {
	return string(d.predicted), nil
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		var options []diff.Option
		if asked.Predicted != nil {
			options = []diff.Option{
				diff.WithServerSideDiff(true),
				diff.WithServerSideDryRunner(dryRun{asked.Predicted}),
				diff.WithIgnoreMutationWebhook(false), // there is none
			}
		}
		found, err := diff.Diff(asked.Config, asked.Live, options...)
		if err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(answer{found.Modified, found.PredictedLive}); err != nil {
			log.Fatal(err)
		}
	}
}
