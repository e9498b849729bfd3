// armcompute and azidentity, as Microsoft ships them, against the emulator. The clients are the judge: only the
// addresses point at the emulator; its certificate authority comes by SSL_CERT_FILE.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

const group, name = "rg", "go"

type told struct {
	URL, Tenant, Subscription string
}

type flows struct {
	told told
	sets *armcompute.VirtualMachineScaleSetsClient
	vms  *armcompute.VirtualMachineScaleSetVMsClient
	all  *armcompute.VirtualMachinesClient
	// The same without retries: the first refusal is the answer.
	once *armcompute.VirtualMachineScaleSetVMsClient
	// For other clients, and for what has none.
	factory  *armcompute.ClientFactory
	pipeline runtime.Pipeline
}

var often = &runtime.PollUntilDoneOptions{Frequency: time.Second}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func require(is bool, format string, parts ...any) {
	if !is {
		log.Panicf(format, parts...)
	}
}

// refused asserts the status and the code of an error of the SDK.
func refused(err error, status int, code string) *azcore.ResponseError {
	var response *azcore.ResponseError
	require(errors.As(err, &response), "not refused: %v", err)
	require(response.StatusCode == status && response.ErrorCode == code, "%d %s instead of %d %s",
		response.StatusCode, response.ErrorCode, status, code)
	return response
}

func (f *flows) order(what string, body any) {
	answer := must(http.Post(f.told.URL+"/_control/"+what, "application/json", bytes.NewReader(must(json.Marshal(body)))))
	defer answer.Body.Close()
	require(answer.StatusCode == 200, "order %s: %s", what, answer.Status)
}

func begin() *flows {
	f := &flows{}
	check(json.Unmarshal([]byte(os.Getenv("EMULATOR")), &f.told))
	configuration := cloud.Configuration{
		ActiveDirectoryAuthorityHost: f.told.URL + "/",
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: f.told.URL, Audience: "https://management.azure.com"},
		},
	}
	options := policy.ClientOptions{Cloud: configuration}
	credential := must(azidentity.NewClientSecretCredential(f.told.Tenant, "app", "secret",
		&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true}))
	factory := must(armcompute.NewClientFactory(f.told.Subscription, credential, &arm.ClientOptions{ClientOptions: options}))
	f.sets, f.vms = factory.NewVirtualMachineScaleSetsClient(), factory.NewVirtualMachineScaleSetVMsClient()
	f.all, f.factory = factory.NewVirtualMachinesClient(), factory
	plain := must(arm.NewClient("flows", "v1.0.0", credential, &arm.ClientOptions{ClientOptions: options}))
	f.pipeline = plain.Pipeline()
	options.Retry.MaxRetries = -1
	factory = must(armcompute.NewClientFactory(f.told.Subscription, credential, &arm.ClientOptions{ClientOptions: options}))
	f.once = factory.NewVirtualMachineScaleSetVMsClient()
	return f
}

func wanted(capacity int64, mode armcompute.OrchestrationMode) armcompute.VirtualMachineScaleSet {
	return armcompute.VirtualMachineScaleSet{
		Location: to.Ptr("eastus2"),
		SKU:      &armcompute.SKU{Name: to.Ptr("Standard_D2s_v5"), Tier: to.Ptr("Standard"), Capacity: to.Ptr(capacity)},
		Properties: &armcompute.VirtualMachineScaleSetProperties{
			Overprovision:     to.Ptr(false),
			OrchestrationMode: to.Ptr(mode),
			UpgradePolicy:     &armcompute.UpgradePolicy{Mode: to.Ptr(armcompute.UpgradeModeManual)},
			VirtualMachineProfile: &armcompute.VirtualMachineScaleSetVMProfile{
				OSProfile: &armcompute.VirtualMachineScaleSetOSProfile{ComputerNamePrefix: to.Ptr("go")},
				StorageProfile: &armcompute.VirtualMachineScaleSetStorageProfile{
					ImageReference: image("1.0.0"),
				},
			},
		},
	}
}

func image(version string) *armcompute.ImageReference {
	return &armcompute.ImageReference{Publisher: to.Ptr("p"), Offer: to.Ptr("o"), SKU: to.Ptr("s"), Version: to.Ptr(version)}
}

func (f *flows) create(ctx context.Context) {
	poller := must(f.sets.BeginCreateOrUpdate(ctx, group, name, wanted(7, armcompute.OrchestrationModeUniform), nil))
	require(!poller.Done(), "the first answer says that the set is there already")
	made := must(poller.PollUntilDone(ctx, often))
	require(*made.Properties.ProvisioningState == "Succeeded" && *made.SKU.Capacity == 7, "%v", *made.SKU.Capacity)
	require(made.Etag != nil && made.Properties.TimeCreated != nil, "no etag or birthday")
}

func (f *flows) list(ctx context.Context) {
	expand := &armcompute.VirtualMachineScaleSetVMsClientListOptions{Expand: to.Ptr("instanceView")}
	pages, seen := 0, 0
	for pager := f.vms.NewListPager(group, name, expand); pager.More(); pages++ {
		for _, vm := range must(pager.NextPage(ctx)).Value {
			statuses := vm.Properties.InstanceView.Statuses
			require(*statuses[0].Code == "ProvisioningState/succeeded" && *statuses[1].Code == "PowerState/running",
				"%s: %s", *vm.InstanceID, *statuses[0].Code)
			require(*vm.Properties.LatestModelApplied && *vm.Properties.VMID != "", "%s", *vm.InstanceID)
			seen++
		}
	}
	require(pages == 3 && seen == 7, "%d VMs on %d pages", seen, pages)
}

func (f *flows) count(ctx context.Context) (n int) {
	for pager := f.vms.NewListPager(group, name, nil); pager.More(); {
		n += len(must(pager.NextPage(ctx)).Value)
	}
	return n
}

func (f *flows) scale(ctx context.Context) {
	poller := must(f.sets.BeginUpdate(ctx, group, name, size(8), nil))
	require(!poller.Done(), "done before it began")
	require(*must(poller.PollUntilDone(ctx, often)).SKU.Capacity == 8, "not scaled")
	require(f.count(ctx) == 8, "%d VMs", f.count(ctx))
	// A poller that is written down and taken up again, as after a restart.
	token := must(must(f.sets.BeginUpdate(ctx, group, name, size(7), nil)).ResumeToken())
	resumed := must(f.sets.BeginUpdate(ctx, group, name, armcompute.VirtualMachineScaleSetUpdate{},
		&armcompute.VirtualMachineScaleSetsClientBeginUpdateOptions{ResumeToken: token}))
	require(*must(resumed.PollUntilDone(ctx, often)).SKU.Capacity == 7, "not scaled back")
}

func (f *flows) model(ctx context.Context) {
	etag := must(f.sets.Get(ctx, group, name, nil)).Etag
	change := armcompute.VirtualMachineScaleSetUpdate{Properties: &armcompute.VirtualMachineScaleSetUpdateProperties{
		VirtualMachineProfile: &armcompute.VirtualMachineScaleSetUpdateVMProfile{
			StorageProfile: &armcompute.VirtualMachineScaleSetUpdateStorageProfile{ImageReference: image("2.0.0")},
		},
	}}
	condition := &armcompute.VirtualMachineScaleSetsClientBeginUpdateOptions{IfMatch: etag}
	after := must(must(f.sets.BeginUpdate(ctx, group, name, change, condition)).PollUntilDone(ctx, often))
	require(*after.Etag != *etag, "the etag stayed %s", *etag)
	_, err := f.sets.BeginUpdate(ctx, group, name, change, condition)
	refused(err, 412, "PreconditionFailed")
}

func (f *flows) upgradeAndReimage(ctx context.Context) {
	ids := armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: to.SliceOfPtrs("0", "1")}
	must(must(f.sets.BeginUpdateInstances(ctx, group, name, ids, nil)).PollUntilDone(ctx, often))
	must(must(f.sets.BeginReimage(ctx, group, name, &armcompute.VirtualMachineScaleSetsClientBeginReimageOptions{
		VMScaleSetReimageInput: &armcompute.VirtualMachineScaleSetReimageParameters{InstanceIDs: to.SliceOfPtrs("0")},
	})).PollUntilDone(ctx, often))
	must(must(f.vms.BeginReimage(ctx, group, name, "1", nil)).PollUntilDone(ctx, often))
	vm := must(f.vms.Get(ctx, group, name, "0", nil))
	require(*vm.Properties.StorageProfile.ImageReference.ExactVersion == "2.0.0", "not upgraded")
	require(*vm.Properties.LatestModelApplied, "not on the latest model")
	policy := armcompute.VirtualMachineScaleSetVM{Location: to.Ptr("eastus2"),
		Properties: &armcompute.VirtualMachineScaleSetVMProperties{ProtectionPolicy: &armcompute.VirtualMachineScaleSetVMProtectionPolicy{
			ProtectFromScaleIn: to.Ptr(true)}}}
	protected := must(must(f.vms.BeginUpdate(ctx, group, name, "0", policy, nil)).PollUntilDone(ctx, often))
	require(*protected.Properties.ProtectionPolicy.ProtectFromScaleIn, "not protected")
}

func (f *flows) deleteInstances(ctx context.Context) {
	ids := armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: to.SliceOfPtrs("2", "3")}
	must(must(f.sets.BeginDeleteInstances(ctx, group, name, ids, nil)).PollUntilDone(ctx, often))
	require(f.count(ctx) == 5, "%d VMs", f.count(ctx))
	must(must(f.vms.BeginDelete(ctx, group, name, "4", nil)).PollUntilDone(ctx, often))
	_, err := f.sets.BeginDeleteInstances(ctx, group, name, ids, nil)
	refused(err, 400, "InvalidParameter")
	require(*must(f.sets.Get(ctx, group, name, nil)).SKU.Capacity == 4, "the size stayed")
}

func (f *flows) failures(ctx context.Context) {
	_, err := f.sets.Get(ctx, group, "none", nil)
	refused(err, 404, "ResourceNotFound")
	_, err = f.vms.Get(ctx, group, name, "999", nil)
	refused(err, 404, "NotFound")
	f.order("deeds", map[string]any{"set": name, "deed": map[string]any{"quota": 1}})
	_, err = f.sets.BeginUpdate(ctx, group, name,
		armcompute.VirtualMachineScaleSetUpdate{SKU: &armcompute.SKU{Capacity: to.Ptr(int64(90))}}, nil)
	refused(err, 409, "OperationNotAllowed")
	f.order("deeds", map[string]any{"set": name, "deed": map[string]any{"quota": nil}})
	rule := map[string]any{"path": "/go/virtualmachines", "status": 429, "code": "OperationNotAllowed", "retryAfter": 1, "times": 2}
	f.order("faults", map[string]any{"rules": []any{rule}})
	_, err = f.once.NewListPager(group, name, nil).NextPage(ctx)
	throttled := refused(err, 429, "OperationNotAllowed")
	require(throttled.RawResponse.Header.Get("Retry-After") == "1", "no Retry-After")
	require(f.count(ctx) == 4, "the client waits and asks again")
	f.order("faults", map[string]any{"chances": map[string]any{"bootFails": 1.0}})
	poller := must(f.sets.BeginUpdate(ctx, group, name,
		armcompute.VirtualMachineScaleSetUpdate{SKU: &armcompute.SKU{Capacity: to.Ptr(int64(5))}}, nil))
	_, err = poller.PollUntilDone(ctx, often)
	var failed *azcore.ResponseError
	require(errors.As(err, &failed) && failed.ErrorCode == "OSProvisioningInternalError", "%v", err)
	f.order("faults", map[string]any{})
}

func (f *flows) flexible(ctx context.Context) {
	made := must(must(f.sets.BeginCreateOrUpdate(ctx, group, "flexgo", wanted(3, armcompute.OrchestrationModeFlexible), nil)).
		PollUntilDone(ctx, often))
	filter := fmt.Sprintf("'virtualMachineScaleSet/id' eq '%s'", *made.ID)
	pager := f.all.NewListPager(group, &armcompute.VirtualMachinesClientListOptions{Filter: &filter,
		Expand: to.Ptr(armcompute.ExpandTypeForListVMsInstanceView)})
	page := must(pager.NextPage(ctx))
	require(len(page.Value) == 3 && page.Value[0].Properties.InstanceView != nil, "%d VMs", len(page.Value))
	require(strings.HasSuffix(*page.Value[0].Properties.VirtualMachineScaleSet.ID, "flexgo"), "of no set")
	must(must(f.all.BeginDelete(ctx, group, *page.Value[0].Name, nil)).PollUntilDone(ctx, often))
	must(must(f.sets.BeginDelete(ctx, group, "flexgo", nil)).PollUntilDone(ctx, often))
}

func (f *flows) deleteSet(ctx context.Context) {
	must(must(f.sets.BeginDelete(ctx, group, name, nil)).PollUntilDone(ctx, often))
	_, err := f.sets.Get(ctx, group, name, nil)
	refused(err, 404, "ResourceNotFound")
}

func main() {
	f := begin()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	all := []struct {
		name string
		run  func(context.Context)
	}{
		{"create", f.create}, {"list", f.list}, {"scale", f.scale}, {"model", f.model},
		{"upgradeAndReimage", f.upgradeAndReimage}, {"deleteInstances", f.deleteInstances},
		{"failures", f.failures}, {"flexible", f.flexible}, {"locks", f.locks}, {"galleryVersions", f.galleryVersions},
		{"extensions", f.extensions}, {"attachAndDetach", f.attachAndDetach}, {"rollingUpgrades", f.rollingUpgrades},
		{"autoscaleWhileRolling", f.autoscaleWhileRolling}, {"mixedPriorities", f.mixedPriorities},
		{"protection", f.protection}, {"imageKinds", f.imageKinds}, {"tags", f.tags}, {"deleteGroup", f.deleteGroup},
		{"deleteSet", f.deleteSet},
	}
	for _, flow := range all {
		flow.run(ctx)
		fmt.Printf("go: %s: ok\n", flow.name)
	}
	fmt.Printf("go: %d flows, all accepted\n", len(all))
}
