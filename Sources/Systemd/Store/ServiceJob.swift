// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd

/// What the service manager is about to do with the service of this process.
package enum ServiceJob: Equatable, Sendable {
    /// Nothing that it runs a job for: the signal came from somebody else.
    case none
    /// It stops the service, and starts it again.
    case restart
    /// It stops the service.
    case stop
    /// Nobody tells: there is no manager, no system bus, or no answer within a second.
    case unknown

    /// Asks the manager over the system bus; waits for at most a few seconds.
    package static var current: ServiceJob {
        var type = [CChar](repeating: 0, count: 64)
        guard unsafe csystemd_job_type(&type, type.count) == 0 else { return .unknown }
        let bytes = type.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return ServiceJob(String(decoding: bytes, as: UTF8.self))
    }

    /// By the word that systemd has for it.
    package init(_ word: String) {
        self =
            switch word {
            case "": .none
            case "restart", "try-restart", "start", "reload-or-start": .restart
            case "stop": .stop
            default: .unknown
            }
    }

    /// Whether nobody will take over what this process holds.
    package var isStop: Bool { self == .stop || self == .none }
}
