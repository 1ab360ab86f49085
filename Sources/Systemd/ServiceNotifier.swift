// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd
internal import System

/// Sender of the service's state to the service manager, over the socket of `NOTIFY_SOCKET`.
///
/// Each call sends one small datagram, and may wait as long as the manager's queue is full.
package struct ServiceNotifier: Sendable {
    /// Result of a notification.
    package enum Outcome: Equatable, Sendable {
        /// The manager has received the datagram.
        case sent
        /// No manager expects notifications (`NOTIFY_SOCKET` is not set).
        case notSupervised
        /// Nothing was sent.
        case failed(NotifyFailure)
    }

    /// Creates the notifier of this process.
    package init() {}

    /// Sends `states` in one datagram.
    @discardableResult
    package func send(_ states: NotifyState...) -> Outcome {
        send(states)
    }

    /// Stores a descriptor with the manager across a restart, replacing others of that name.
    ///
    /// Requires FileDescriptorStoreMax= in the unit. The manager receives its own descriptor, so the caller may close
    /// its own.
    @discardableResult
    package func store(_ descriptor: Int32, as name: DescriptorName) -> Outcome {
        // Two datagrams, because one with a descriptor only adds.
        let forgotten = send(.forgetDescriptors(name: name))
        guard forgotten == .sent else { return forgotten }
        return send([.storeDescriptors(name: name)], with: [descriptor])
    }

    /// Waits until the manager has processed everything sent, or until the timeout.
    package func settle(milliseconds: UInt64 = 2_000) { _ = sd_notify_barrier(0, milliseconds * 1_000) }

    /// Sends `states` in one datagram, together with descriptors.
    @discardableResult
    package func send(_ states: [NotifyState], with descriptors: [Int32] = []) -> Outcome {
        let text: String
        do {
            text = try NotifyState.render(states)
        } catch {
            return .failed(error)
        }
        // The environment is kept, because every later notification needs it. Helpers get a separate environment.
        let result =
            descriptors.isEmpty
            ? unsafe sd_notify(0, text)
            : unsafe sd_pid_notify_with_fds(0, 0, text, descriptors, UInt32(clamping: descriptors.count))
        if result > 0 { return .sent }
        return result == 0 ? .notSupervised : .failed(.system(errno: 0 &- result))
    }
}

/// State that a service reports to its manager, as in `sd_notify(3)`.
///
/// A list of states becomes one datagram, so that READY and its status text arrive together.
package enum NotifyState: Equatable, Sendable {
    /// `READY=1`: start-up or a reload is complete. Sent after the last listener accepts.
    case ready
    /// `RELOADING=1`, with the `CLOCK_MONOTONIC` time in microseconds at which the reload began.
    ///
    /// `Type=notify-reload` needs the time, and `Type=notify` ignores it. ``ready`` must follow, even if the new
    /// configuration was refused.
    case reloading(monotonicMicroseconds: UInt64)
    /// `STOPPING=1`: the drain has started.
    case stopping
    /// `STATUS=`: a sentence that an operator can act on, shown by `systemctl status`.
    case status(String)
    /// `WATCHDOG=1`: the service is alive.
    case watchdog
    /// `MAINPID=`: the process that the manager must watch from now on.
    case mainProcess(Int32)
    /// `FDSTORE=1` and `FDNAME=`: keep the descriptors of this datagram across a restart.
    case storeDescriptors(name: DescriptorName)
    /// `FDSTOREREMOVE=1` and `FDNAME=`: discard the descriptors of that name.
    case forgetDescriptors(name: DescriptorName)

    /// Returns the text of one datagram, with an assignment on each line.
    ///
    /// - Throws: if a value contains a line break or a NUL, which would end its assignment and could forge another.
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

/// Failure to notify the service manager.
package enum NotifyFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The value of that assignment contains a line break or a NUL.
    case lineBreak(in: String)
    /// `sd_notify` failed with that `errno`.
    case system(errno: Int32)

    /// Description in one sentence, for the log.
    package var description: String {
        switch self {
        case .lineBreak(let name):
            "cannot notify the service manager: the value of \(name) contains a line break"
        case .system(let errno):
            "cannot notify the service manager: the socket named by NOTIFY_SOCKET failed: \(SystemError.numberedMessage(errno))"
        }
    }
}

/// Watchdog settings of a service with `WatchdogSec=`.
package struct Watchdog: Equatable, Sendable {
    /// Time without a ``NotifyState/watchdog`` after which the manager kills the service.
    package let interval: Duration

    /// Time between two notifications: half the interval, as sd_watchdog_enabled(3) recommends.
    package var beat: Duration { interval / 2 }

    /// Reads `WATCHDOG_USEC` (microseconds) and `WATCHDOG_PID` from `environment`.
    ///
    /// - Returns: nil if no watchdog is configured, or if it is for a process other than `process`.
    /// - Throws: if either variable is not a positive whole number.
    package static func expected(
        in environment: [String: String], of process: Int32
    ) throws(WatchdogError) -> Watchdog? {
        guard let microseconds = environment["WATCHDOG_USEC"] else { return nil }
        if let meant = environment["WATCHDOG_PID"] {
            guard let meant = Int32(meant), meant > 0 else {
                throw WatchdogError(variable: "WATCHDOG_PID", value: meant)
            }
            guard meant == process else { return nil }
        }
        // An interval beyond Int64, some 292 000 years, counts as no watchdog.
        guard let count = UInt64(microseconds), count > 0 else {
            throw WatchdogError(variable: "WATCHDOG_USEC", value: microseconds)
        }
        guard let count = Int64(exactly: count) else { return nil }
        return Watchdog(interval: .microseconds(count))
    }
}

/// Invalid environment variable of the watchdog.
package struct WatchdogError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Name of the environment variable.
    package let variable: String
    /// Value of the variable.
    package let value: String

    /// Description of the problem, with its remedy.
    package var description: String {
        "\(variable) is \(String(reflecting: value)), which is not a positive whole number; systemd sets it from "
            + "WatchdogSec=, so unset it if the daemon is started by hand"
    }
}
