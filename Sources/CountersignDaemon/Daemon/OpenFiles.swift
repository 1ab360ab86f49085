// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Settings

/// How many descriptors this process may have (RLIMIT_NOFILE, getrlimit(2)).
enum OpenFiles {
    /// Raises the limit to what an administrator allows. The usual 1024 is for programs that use select(2), which takes no
    /// more; nothing here does.
    static func raiseLimit() {
        guard var limit = current, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        // The unit forbids it, and sets both limits itself.
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// What is missing for that many callers and exchanges; `nil` where nothing is.
    static func shortage(for limits: LimitSettings) -> String? {
        guard let allowed = current?.rlim_cur else { return nil }
        return shortage(for: limits, allowed: UInt64(allowed))
    }

    /// The same where `allowed` descriptors may be open: one for each caller, and for each exchange, of which a caller has
    /// one at a time, one to its upstream and one for a body that is kept on disk; and those that are always there.
    static func shortage(for limits: LimitSettings, allowed: UInt64) -> String? {
        let needed = limits.callers + 2 * min(limits.callers, limits.exchanges) + 128
        guard allowed < needed else { return nil }
        return "this process may open \(allowed) files, and \(limits.callers) callers with an exchange each may take "
            + "\(needed): raise LimitNOFILE= of the unit (ulimit -Hn), or lower limits.callers"
    }

    private static var current: rlimit? {
        var limit = rlimit()
        return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }
}
