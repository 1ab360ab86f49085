// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd

/// Tells the service manager, over the socket that `NOTIFY_SOCKET` names, how the service is.
///
/// A send is one small datagram; it can wait for as long as the manager's queue is full.
package struct ServiceNotifier: Sendable {
    /// What became of a notification.
    package enum Outcome: Equatable, Sendable {
        /// The manager has the datagram.
        case sent
        /// No manager asked for notifications (`NOTIFY_SOCKET` is not set).
        case notSupervised
        /// Nothing was sent.
        case failed(NotifyFailure)
    }

    /// The notifier of this process.
    package init() {}

    /// Sends `states` in one datagram.
    @discardableResult
    package func send(_ states: NotifyState...) -> Outcome {
        send(states)
    }

    /// Sends `states` in one datagram.
    @discardableResult
    package func send(_ states: [NotifyState]) -> Outcome {
        let text: String
        do {
            text = try NotifyState.render(states)
        } catch {
            return .failed(error)
        }
        // The environment stays as it is: every later notification needs it. Helpers that are started get one of
        // their own.
        let result = unsafe sd_notify(0, text)
        if result > 0 { return .sent }
        return result == 0 ? .notSupervised : .failed(.system(errno: 0 &- result))
    }
}
