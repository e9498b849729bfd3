// The components of a control plane and kubectl in one program: the name it is called by says which of them it is. They
// share most of their packages, so this is one link and one file in place of five.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	// Time zones, for hosts that have none.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	// What the own main packages of the components register.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	called := filepath.Base(os.Args[0])
	if called == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command := component(called)
	if command == nil {
		fmt.Fprintf(os.Stderr, "%s: no component has this name\n", called)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}

func component(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubectl":
		return cmd.NewDefaultKubectlCommand()
	}
	return nil
}
