//! Failed allocations in calls that only the LSM has.

use crate::levels::Lsm;
use gpu_conformance::is_checked;
use gpu_dictionary_conformance::fail;
use gpu_lsm::CleanupPolicy;
use gpu_primitives::Device;

pub fn failed_cleanups_and_views(device: &Device) {
    fail::<Lsm>(device, "a view", (3, 1), |both, stream, _| both.dictionary.view(stream).map(drop));
    if is_checked(device) {
        return;
    }
    // If the cleanup fails, the insertion has succeeded nevertheless.
    let allocations = fail::<Lsm>(device, "an insertion that triggers a cleanup", (2, 10), |both, stream, input| {
        both.dictionary.set_cleanup_policy(Some(CleanupPolicy::new().stale_share(0.0).max_levels(1)));
        both.dictionary.insert(stream, (&input.keys_on_device, &input.values_on_device))?;
        both.model_insert(&input.keys, &input.values);
        Ok(())
    });
    assert!(allocations > 0);
}
