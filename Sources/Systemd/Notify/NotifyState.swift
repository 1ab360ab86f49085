// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One thing that a service tells its manager, as `sd_notify(3)` names them.
///
/// A list of states is rendered to one datagram by a pure function, so that READY and the sentence beside it arrive
/// together.
package enum NotifyState: Equatable, Sendable {
    /// `READY=1`: start-up, or a reload, is done. Sent after the last listener accepts.
    case ready
    /// `RELOADING=1` with the `CLOCK_MONOTONIC` time in microseconds at which the reload began, which `Type=notify-reload`
    /// needs and `Type=notify` ignores. ``ready`` must follow, also where the new configuration was refused.
    case reloading(monotonicMicroseconds: UInt64)
    /// `STOPPING=1`: the drain has begun.
    case stopping
    /// `STATUS=`: one sentence an operator can act on, shown by `systemctl status`.
    case status(String)
    /// `WATCHDOG=1`: the service is alive.
    case watchdog
    /// `MAINPID=`: the process that the manager is to watch from now on.
    case mainProcess(Int32)
    /// `FDSTORE=1` and `FDNAME=`: the descriptors that travel with this datagram are to be kept across a restart.
    case storeDescriptors(name: DescriptorName)
    /// `FDSTOREREMOVE=1` and `FDNAME=`: the manager is to forget the descriptors of that name.
    case forgetDescriptors(name: DescriptorName)

    /// The text of one datagram: an assignment on each line.
    ///
    /// - Throws: where a sentence holds a line break or a NUL, which would end its assignment and could forge another.
    package static func render(_ states: [NotifyState]) throws(NotifyFailure) -> String {
        var lines: [String] = []
        for state in states {
            for (name, value) in state.assignments {
                guard !value.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D || $0 == 0 }) else {
                    throw .lineBreak(in: name)
                }
                lines.append("\(name)=\(value)")
            }
        }
        return lines.joined(separator: "\n")
    }

    private var assignments: [(String, String)] {
        switch self {
        case .ready: [("READY", "1")]
        case .reloading(let microseconds): [("RELOADING", "1"), ("MONOTONIC_USEC", String(microseconds))]
        case .stopping: [("STOPPING", "1")]
        case .status(let sentence): [("STATUS", sentence)]
        case .watchdog: [("WATCHDOG", "1")]
        case .mainProcess(let process): [("MAINPID", String(process))]
        case .storeDescriptors(let name): [("FDSTORE", "1"), ("FDNAME", name.rawValue)]
        case .forgetDescriptors(let name): [("FDSTOREREMOVE", "1"), ("FDNAME", name.rawValue)]
        }
    }
}

/// Why the service manager was not told.
package enum NotifyFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The value of that assignment holds a line break or a NUL.
    case lineBreak(in: String)
    /// `sd_notify` failed with that `errno`.
    case system(errno: Int32)

    /// One sentence for the log.
    package var description: String {
        switch self {
        case .lineBreak(let name):
            "the service manager was not told: the value of \(name) holds a line break"
        case .system(let errno):
            "the service manager was not told: the socket that NOTIFY_SOCKET names answered \(systemMessage(errno))"
        }
    }
}
