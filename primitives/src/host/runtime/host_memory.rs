//! How much memory the host has.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the available and the total host memory in bytes: what the machine has and what the control groups of the process allow. If
/// the system does not report them, both are the whole address space.
pub(crate) fn host_memory() -> (usize, usize) {
    let machine = machine(&read_to_string("/proc/meminfo").unwrap_or_default());
    groups(&read_to_string("/proc/self/cgroup").unwrap_or_default(), Path::new("/sys/fs/cgroup"))
        .into_iter()
        .filter_map(|group| limit(&group))
        .fold(machine, |(free, total), (group_free, group_total)| (free.min(group_free), total.min(group_total)))
}

/// Returns the available and the total memory of the machine.
fn machine(meminfo: &str) -> (usize, usize) {
    let bytes_of = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    };
    let total = bytes_of("MemTotal:").unwrap_or(isize::MAX as usize);
    (bytes_of("MemAvailable:").unwrap_or(total), total)
}

/// Returns the folders of the control groups of a process and of the groups around them. Both versions of the interface are read: the
/// second has one line, `0::PATH`, the first one per controller.
fn groups(cgroup: &str, root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => root.to_owned(),
            _ if controllers.split(',').any(|name| name == "memory") => root.join("memory"),
            _ => continue,
        };
        folders.extend(Path::new(path.trim_start_matches('/')).ancestors().map(|folder| root.join(folder)));
    }
    folders
}

/// Returns the available and the total memory of a control group; `None` if it has no limit. Pages of files that nobody uses now count as
/// available.
fn limit(group: &Path) -> Option<(usize, usize)> {
    let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<usize>().ok();
    let total = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix("total_inactive_file ").or_else(|| line.strip_prefix("inactive_file ")))
        .and_then(|bytes| bytes.trim().parse::<usize>().ok())
        .unwrap_or(0);
    Some((total.saturating_sub(used.saturating_sub(reclaimable)), total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_machine_tells_what_it_has() {
        assert_eq!(machine("MemTotal:  8 kB\nMemFree: 1 kB\nMemAvailable:     2 kB\n"), (2048, 8192));
        assert_eq!(machine(""), (isize::MAX as usize, isize::MAX as usize));
        let (free, total) = host_memory();
        assert!(0 < free && free <= total);
    }

    #[test]
    fn control_groups_limit_the_memory() {
        let root = std::env::temp_dir().join(format!("gpu-primitives-groups-{}", std::process::id()));
        let (one, two) = (root.join("a/b"), root.join("memory/c"));
        create_dir_all(&one).unwrap();
        create_dir_all(&two).unwrap();
        assert_eq!(groups("0::/a/b\n", &root), [one.clone(), root.join("a"), root.clone()]);
        assert_eq!(groups("7:cpu,memory:/c\n3:cpuset:/d\n", &root), [two.clone(), root.join("memory")]);
        assert!(groups("nonsense\n", &root).is_empty());
        assert_eq!(limit(&one), None);
        write(one.join("memory.max"), "max\n").unwrap();
        write(one.join("memory.current"), "700\n").unwrap();
        assert_eq!(limit(&one), None);
        write(one.join("memory.max"), "1000\n").unwrap();
        assert_eq!(limit(&one), Some((300, 1000)));
        write(one.join("memory.stat"), "anon 3\ninactive_file 50\n").unwrap();
        assert_eq!(limit(&one), Some((350, 1000)));
        write(two.join("memory.limit_in_bytes"), "10\n").unwrap();
        write(two.join("memory.usage_in_bytes"), "12\n").unwrap();
        assert_eq!(limit(&two), Some((0, 10)));
        std::fs::remove_dir_all(root).unwrap();
    }
}
