//! Failed allocations in what other dictionaries do not have.

use crate::levels::Lsm;
use gpu_conformance::dictionary::fail;
use gpu_conformance::is_checked;
use gpu_lsm::CleanupPolicy;
use gpu_primitives::Device;

pub fn failed_cleanups_and_views(device: &Device) {
    fail::<Lsm>(device, "a view", (3, 1), |both, stream, _| both.dictionary.view::<u32>(stream).map(drop));
    if is_checked(device) {
        return;
    }
    // The cleanup may fail; then the insertion has succeeded all the same.
    let allocations = fail::<Lsm>(device, "an insertion that asks for a cleanup", (2, 10), |both, stream, input| {
        both.dictionary.set_cleanup_policy(Some(CleanupPolicy { stale_share: 0.0, max_levels: 1 }));
        both.dictionary.insert(stream, &input.keys_on_device, &input.values_on_device)?;
        both.model_insert(&input.keys, &input.values);
        Ok(())
    });
    assert!(allocations > 0);
}
