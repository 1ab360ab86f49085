// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd

/// Job of the service manager for this process's service.
package enum ServiceJob: Equatable, Sendable {
    /// No job: the signal was not sent by the manager.
    case none
    /// A restart.
    case restart
    /// A stop.
    case stop
    /// Unknown: there is no manager, no system bus, or no answer within a second.
    case unknown

    /// Current job, from the manager over the system bus; waits for at most a few seconds.
    package static var current: ServiceJob {
        var type = [CChar](repeating: 0, count: 64)
        guard unsafe csystemd_job_type(&type, type.count) == 0 else { return .unknown }
        let bytes = type.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return ServiceJob(String(decoding: bytes, as: UTF8.self))
    }

    /// Creates the job from systemd's name for it.
    package init(_ word: String) {
        self =
            switch word {
            case "": .none
            case "restart", "try-restart", "start", "reload-or-start": .restart
            case "stop": .stop
            default: .unknown
            }
    }

    /// True if no other process will take over the sessions of this one.
    package var isStop: Bool { self == .stop || self == .none }
}
