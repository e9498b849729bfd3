package main

// What came after the first flows: locks, versions of images, extensions, attached VMs, rolling upgrades, Spot, autoscale,
// protection, kinds of images, tags, and the end of a group. What has no client here goes by the same pipeline.

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

type object = map[string]any

// send asks by the client's own pipeline, with its token and its address.
func (f *flows) send(ctx context.Context, method, path, version string, body any) (*http.Response, error) {
	request := must(runtime.NewRequest(ctx, method, f.told.URL+path+"?api-version="+version))
	if body != nil {
		check(runtime.MarshalAsJSON(request, body))
	}
	answer, err := f.pipeline.Do(request)
	if err == nil && answer.StatusCode >= 300 {
		return answer, runtime.NewResponseError(answer)
	}
	return answer, err
}

func (f *flows) group() string {
	return "/subscriptions/" + f.told.Subscription + "/resourceGroups/" + group
}

func (f *flows) id(set string) string {
	return f.group() + "/providers/Microsoft.Compute/virtualMachineScaleSets/" + set
}

func (f *flows) make(ctx context.Context, set string, body armcompute.VirtualMachineScaleSet) {
	must(must(f.sets.BeginCreateOrUpdate(ctx, group, set, body, nil)).PollUntilDone(ctx, often))
}

func (f *flows) remove(ctx context.Context, set string) {
	must(must(f.sets.BeginDelete(ctx, group, set, nil)).PollUntilDone(ctx, often))
}

// of lists the VMs of a Flexible set.
func (f *flows) of(ctx context.Context, set string) (vms []*armcompute.VirtualMachine) {
	filter := "'virtualMachineScaleSet/id' eq '" + f.id(set) + "'"
	for pager := f.all.NewListPager(group, &armcompute.VirtualMachinesClientListOptions{Filter: &filter}); pager.More(); {
		vms = append(vms, must(pager.NextPage(ctx)).Value...)
	}
	return vms
}

func size(n int64) armcompute.VirtualMachineScaleSetUpdate {
	return armcompute.VirtualMachineScaleSetUpdate{SKU: &armcompute.SKU{Capacity: to.Ptr(n)}}
}

func (f *flows) locks(ctx context.Context) {
	f.make(ctx, "lockgo", wanted(2, armcompute.OrchestrationModeUniform))
	const version = "2020-05-01"
	keep := f.id("lockgo") + "/providers/Microsoft.Authorization/locks/keep"
	still := f.group() + "/providers/Microsoft.Authorization/locks/still"
	must(f.send(ctx, "PUT", keep, version, object{"properties": object{"level": "CanNotDelete"}}))
	_, err := f.sets.BeginDelete(ctx, group, "lockgo", nil)
	refused(err, 409, "ScopeLocked")
	// A batch is a POST, which no such lock stops.
	ids := armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: to.SliceOfPtrs("0")}
	must(must(f.sets.BeginDeleteInstances(ctx, group, "lockgo", ids, nil)).PollUntilDone(ctx, often))
	must(f.send(ctx, "PUT", still, version, object{"properties": object{"level": "ReadOnly"}}))
	_, err = f.sets.BeginUpdate(ctx, group, "lockgo", size(3), nil)
	refused(err, 409, "ScopeLocked")
	_, err = f.sets.BeginDeleteInstances(ctx, group, "lockgo", ids, nil)
	refused(err, 409, "ScopeLocked")
	must(f.send(ctx, "DELETE", still, version, nil))
	must(f.send(ctx, "DELETE", keep, version, nil))
	f.remove(ctx, "lockgo")
}

func (f *flows) galleryVersions(ctx context.Context) {
	versions := f.factory.NewGalleryImageVersionsClient()
	source := f.group() + "/providers/Microsoft.Compute/images/built"
	body := armcompute.GalleryImageVersion{Location: to.Ptr("eastus2"), Properties: &armcompute.GalleryImageVersionProperties{
		PublishingProfile: &armcompute.GalleryImageVersionPublishingProfile{
			TargetRegions: []*armcompute.TargetRegion{{Name: to.Ptr("East US 2")}}},
		StorageProfile: &armcompute.GalleryImageVersionStorageProfile{
			Source: &armcompute.GalleryArtifactVersionFullSource{ID: &source}},
	}}
	made := must(must(versions.BeginCreateOrUpdate(ctx, group, "shared", "web", "1.4.0", body, nil)).PollUntilDone(ctx, often))
	require(*made.Properties.ProvisioningState == "Succeeded", "%v", *made.Properties.ProvisioningState)
	expand := &armcompute.GalleryImageVersionsClientGetOptions{Expand: to.Ptr(armcompute.ReplicationStatusTypesReplicationStatus)}
	one := must(versions.Get(ctx, group, "shared", "web", "1.4.0", expand))
	require(*one.Properties.ReplicationStatus.AggregatedState == "Completed", "not replicated")
	names := ""
	for pager := versions.NewListByGalleryImagePager(group, "shared", "web", nil); pager.More(); {
		for _, one := range must(pager.NextPage(ctx)).Value {
			names += *one.Name + " "
		}
	}
	require(names == "1.2.0 1.4.0 ", "%s", names)
	must(must(versions.BeginDelete(ctx, group, "shared", "web", "1.4.0", nil)).PollUntilDone(ctx, often))
	_, err := versions.Get(ctx, group, "shared", "web", "1.4.0", nil)
	refused(err, 404, "ResourceNotFound")
}

func (f *flows) extensions(ctx context.Context) {
	extensions := f.factory.NewVirtualMachineScaleSetExtensionsClient()
	before := *must(f.sets.Get(ctx, group, name, nil)).Etag
	body := armcompute.VirtualMachineScaleSetExtension{Properties: &armcompute.VirtualMachineScaleSetExtensionProperties{
		Publisher: to.Ptr("Microsoft.Azure.Monitor"), Type: to.Ptr("AzureMonitorLinuxAgent"), TypeHandlerVersion: to.Ptr("1.0"),
		ProtectedSettings: object{"key": "secret"}}}
	made := must(must(extensions.BeginCreateOrUpdate(ctx, group, name, "agent", body, nil)).PollUntilDone(ctx, often))
	require(*made.Properties.ProvisioningState == "Succeeded" && made.Properties.ProtectedSettings == nil, "%v", made.Properties)
	require(*must(f.sets.Get(ctx, group, name, nil)).Etag != before, "the etag stayed")
	newer := armcompute.VirtualMachineScaleSetExtensionUpdate{
		Properties: &armcompute.VirtualMachineScaleSetExtensionProperties{TypeHandlerVersion: to.Ptr("1.1")}}
	must(must(extensions.BeginUpdate(ctx, group, name, "agent", newer, nil)).PollUntilDone(ctx, often))
	page := must(extensions.NewListPager(group, name, nil).NextPage(ctx))
	require(len(page.Value) == 1 && *page.Value[0].Properties.TypeHandlerVersion == "1.1", "%d", len(page.Value))
	must(must(extensions.BeginDelete(ctx, group, name, "agent", nil)).PollUntilDone(ctx, often))
	_, err := extensions.Get(ctx, group, name, "agent", nil)
	refused(err, 404, "NotFound")
}

func (f *flows) attachAndDetach(ctx context.Context) {
	f.make(ctx, "attachgo", wanted(1, armcompute.OrchestrationModeFlexible))
	set := f.id("attachgo")
	own := armcompute.VirtualMachine{Location: to.Ptr("eastus2"), Properties: &armcompute.VirtualMachineProperties{
		HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypes("Standard_D2s_v5"))},
		StorageProfile: &armcompute.StorageProfile{ImageReference: image("7.0.0"),
			OSDisk: &armcompute.OSDisk{CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage)}},
		OSProfile: &armcompute.OSProfile{ComputerName: to.Ptr("odd"), AdminUsername: to.Ptr("me"), AdminPassword: to.Ptr("not-kept-1A")},
		NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{
			{ID: to.Ptr(f.group() + "/providers/Microsoft.Network/networkInterfaces/odd")}}},
		VirtualMachineScaleSet: &armcompute.SubResource{ID: &set},
	}}
	made := must(must(f.all.BeginCreateOrUpdate(ctx, group, "odd", own, nil)).PollUntilDone(ctx, often))
	require(strings.EqualFold(*made.Properties.VirtualMachineScaleSet.ID, set), "of no set")
	require(len(f.of(ctx, "attachgo")) == 2, "not attached")
	points := func(at *armcompute.SubResource) armcompute.VirtualMachineUpdate {
		return armcompute.VirtualMachineUpdate{Properties: &armcompute.VirtualMachineProperties{VirtualMachineScaleSet: at}}
	}
	detached := must(must(f.all.BeginUpdate(ctx, group, "odd", points(azcore.NullValue[*armcompute.SubResource]()), nil)).
		PollUntilDone(ctx, often))
	require(detached.Properties.VirtualMachineScaleSet == nil && len(f.of(ctx, "attachgo")) == 1, "not detached")
	must(must(f.all.BeginUpdate(ctx, group, "odd", points(&armcompute.SubResource{ID: &set}), nil)).PollUntilDone(ctx, often))
	require(len(f.of(ctx, "attachgo")) == 2, "not attached again")
	_, err := f.all.BeginUpdate(ctx, group, "odd", points(&armcompute.SubResource{ID: to.Ptr(f.id(name))}), nil)
	refused(err, 409, "PropertyChangeNotAllowed")
	f.remove(ctx, "attachgo")
}

func rolls(capacity int64) armcompute.VirtualMachineScaleSet {
	body := wanted(capacity, armcompute.OrchestrationModeUniform)
	body.Properties.UpgradePolicy.Mode = to.Ptr(armcompute.UpgradeModeRolling)
	return body
}

func images(reference *armcompute.ImageReference) armcompute.VirtualMachineScaleSetUpdate {
	return armcompute.VirtualMachineScaleSetUpdate{Properties: &armcompute.VirtualMachineScaleSetUpdateProperties{
		VirtualMachineProfile: &armcompute.VirtualMachineScaleSetUpdateVMProfile{
			StorageProfile: &armcompute.VirtualMachineScaleSetUpdateStorageProfile{ImageReference: reference}}}}
}

func (f *flows) history(ctx context.Context, set string) (told []string) {
	for pager := f.sets.NewGetOSUpgradeHistoryPager(group, set, nil); pager.More(); {
		for _, one := range must(pager.NextPage(ctx)).Value {
			told = append(told, string(*one.Properties.RunningStatus.Code))
		}
	}
	return told
}

func (f *flows) rollingUpgrades(ctx context.Context) {
	upgrades := f.factory.NewVirtualMachineScaleSetRollingUpgradesClient()
	f.make(ctx, "rollgo", rolls(6))
	_, err := upgrades.BeginCancel(ctx, group, "rollgo", nil)
	refused(err, 409, "OperationNotAllowed")
	must(f.sets.BeginUpdate(ctx, group, "rollgo", images(image("2.0.0")), nil))
	must(must(upgrades.BeginCancel(ctx, group, "rollgo", nil)).PollUntilDone(ctx, often))
	latest := must(upgrades.GetLatest(ctx, group, "rollgo", nil))
	require(*latest.Properties.RunningStatus.Code == armcompute.RollingUpgradeStatusCodeCancelled, "not cancelled")
	told := f.history(ctx, "rollgo")
	require(len(told) == 1 && told[0] == "Cancelled", "%v", told)
	f.remove(ctx, "rollgo")
}

// Autoscale writes the capacity while the platform rolls: both come to their end.
func (f *flows) autoscaleWhileRolling(ctx context.Context) {
	const version = "2022-10-01"
	f.make(ctx, "autogo", rolls(4))
	must(f.sets.BeginUpdate(ctx, group, "autogo", images(image("2.0.0")), nil))
	setting := f.group() + "/providers/Microsoft.Insights/autoscalesettings/go"
	capacity := object{"minimum": "6", "maximum": "6", "default": "6"}
	must(f.send(ctx, "PUT", setting, version, object{"location": "eastus2", "properties": object{"enabled": true,
		"targetResourceUri": f.id("autogo"), "profiles": []object{{"name": "all", "capacity": capacity, "rules": []object{}}}}}))
	upgrades := f.factory.NewVirtualMachineScaleSetRollingUpgradesClient()
	var latest armcompute.VirtualMachineScaleSetRollingUpgradesClientGetLatestResponse
	n := 0
	for tries := 0; tries < 60; tries++ {
		latest, n = must(upgrades.GetLatest(ctx, group, "autogo", nil)), 0
		for pager := f.vms.NewListPager(group, "autogo", nil); pager.More(); {
			n += len(must(pager.NextPage(ctx)).Value)
		}
		if *latest.Properties.RunningStatus.Code == armcompute.RollingUpgradeStatusCodeCompleted && n == 6 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	require(*latest.Properties.RunningStatus.Code == armcompute.RollingUpgradeStatusCodeCompleted && n == 6,
		"%s with %d VMs", *latest.Properties.RunningStatus.Code, n)
	require(*must(f.sets.Get(ctx, group, "autogo", nil)).SKU.Capacity == 6, "the capacity is not that of autoscale")
	must(f.send(ctx, "DELETE", setting, version, nil))
	f.remove(ctx, "autogo")
}

func (f *flows) mixedPriorities(ctx context.Context) {
	body := wanted(4, armcompute.OrchestrationModeFlexible)
	body.Properties.PriorityMixPolicy = &armcompute.PriorityMixPolicy{
		BaseRegularPriorityCount: to.Ptr(int32(2)), RegularPriorityPercentageAboveBase: to.Ptr(int32(50))}
	body.Properties.VirtualMachineProfile.Priority = to.Ptr(armcompute.VirtualMachinePriorityTypesSpot)
	body.Properties.VirtualMachineProfile.EvictionPolicy = to.Ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
	f.make(ctx, "mixgo", body)
	spot := 0
	for _, vm := range f.of(ctx, "mixgo") {
		if vm.Properties.Priority != nil && *vm.Properties.Priority == armcompute.VirtualMachinePriorityTypesSpot {
			spot++
		}
	}
	require(spot == 1, "%d Spot VMs", spot)
	kept := must(f.sets.Get(ctx, group, "mixgo", nil)).Properties.PriorityMixPolicy
	require(*kept.BaseRegularPriorityCount == 2 && *kept.RegularPriorityPercentageAboveBase == 50, "%v", kept)
	f.remove(ctx, "mixgo")
}

func (f *flows) protection(ctx context.Context) {
	protect := func(set, id string, on bool) armcompute.VirtualMachineScaleSetVMsClientUpdateResponse {
		policy := &armcompute.VirtualMachineScaleSetVMProtectionPolicy{
			ProtectFromScaleIn: &on, ProtectFromScaleSetActions: &on}
		body := armcompute.VirtualMachineScaleSetVM{Location: to.Ptr("eastus2"),
			Properties: &armcompute.VirtualMachineScaleSetVMProperties{ProtectionPolicy: policy}}
		return must(must(f.vms.BeginUpdate(ctx, group, set, id, body, nil)).PollUntilDone(ctx, often))
	}
	for set, mode := range map[string]armcompute.OrchestrationMode{
		"keepgo": armcompute.OrchestrationModeUniform, "keepflexgo": armcompute.OrchestrationModeFlexible} {
		f.make(ctx, set, wanted(2, mode))
		id := "0"
		if mode == armcompute.OrchestrationModeFlexible {
			id = *f.of(ctx, set)[0].Name
		}
		shown := protect(set, id, true)
		require(*shown.Properties.ProtectionPolicy.ProtectFromScaleSetActions, "%s: not protected", set)
		read := must(f.vms.Get(ctx, group, set, id, nil))
		require(*read.Properties.ProtectionPolicy.ProtectFromScaleIn, "%s: not kept", set)
		ids := armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: to.SliceOfPtrs(id)}
		_, err := f.sets.BeginDeleteInstances(ctx, group, set, ids, nil)
		refused(err, 409, "OperationNotAllowed")
		protect(set, id, false)
		must(must(f.sets.BeginDeleteInstances(ctx, group, set, ids, nil)).PollUntilDone(ctx, often))
		f.remove(ctx, set)
	}
}

// Whether an image is of the marketplace, and of which offer, is decided when the set is made.
func (f *flows) imageKinds(ctx context.Context) {
	f.make(ctx, "kindgo", wanted(1, armcompute.OrchestrationModeUniform))
	versions := f.group() + "/providers/Microsoft.Compute/galleries/shared/images/web/versions/1.2.0"
	ofGallery := &armcompute.ImageReference{ID: &versions}
	_, err := f.sets.BeginUpdate(ctx, group, "kindgo", images(ofGallery), nil)
	refused(err, 409, "OperationNotAllowed")
	other := image("2.0.0")
	other.Offer = to.Ptr("other")
	_, err = f.sets.BeginUpdate(ctx, group, "kindgo", images(other), nil)
	refused(err, 409, "PropertyChangeNotAllowed")
	f.remove(ctx, "kindgo")
	body := wanted(1, armcompute.OrchestrationModeUniform)
	body.Properties.VirtualMachineProfile.StorageProfile.ImageReference = ofGallery
	f.make(ctx, "galgo", body)
	_, err = f.sets.BeginUpdate(ctx, group, "galgo", images(image("2.0.0")), nil)
	refused(err, 409, "OperationNotAllowed")
	f.remove(ctx, "galgo")
}

func (f *flows) tags(ctx context.Context) {
	many := func(n int) armcompute.VirtualMachineScaleSetUpdate {
		tags := map[string]*string{}
		for len(tags) < n {
			tags[strings.Repeat("t", len(tags)+1)] = to.Ptr("x")
		}
		return armcompute.VirtualMachineScaleSetUpdate{Tags: tags}
	}
	must(must(f.sets.BeginUpdate(ctx, group, name, many(50), nil)).PollUntilDone(ctx, often))
	_, err := f.sets.BeginUpdate(ctx, group, name, many(51), nil)
	refused(err, 400, "InvalidTags")
	require(len(must(f.sets.Get(ctx, group, name, nil)).Tags) == 50, "a refused write changed the tags")
	for _, wrong := range []any{"all", []int{1}, object{"a": 1}, object{"a": object{}}} {
		_, err := f.send(ctx, "PATCH", f.id(name), "2024-07-01", object{"tags": wrong})
		require(err != nil, "%v was taken for tags", wrong)
	}
	require(len(must(f.sets.Get(ctx, group, name, nil)).Tags) == 50, "a malformed write changed the tags")
}

func (f *flows) deleteGroup(ctx context.Context) {
	const version = "2021-04-01"
	gone := "/subscriptions/" + f.told.Subscription + "/resourceGroups/gone"
	must(f.send(ctx, "PUT", gone, version, object{"location": "eastus2"}))
	body := wanted(2, armcompute.OrchestrationModeUniform)
	must(must(f.sets.BeginCreateOrUpdate(ctx, "gone", "web", body, nil)).PollUntilDone(ctx, often))
	answer := must(f.send(ctx, "DELETE", gone, version, nil))
	poller := must(runtime.NewPoller[json.RawMessage](answer, f.pipeline, nil))
	must(poller.PollUntilDone(ctx, often))
	_, err := f.sets.Get(ctx, "gone", "web", nil)
	refused(err, 404, "ResourceGroupNotFound")
}
